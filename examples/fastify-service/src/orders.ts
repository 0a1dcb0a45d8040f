import { z } from 'zod'

export const Order = z.object({ id: z.string(), amount: z.number(), card: z.string() })
export type Order = z.infer<typeof Order>

export class CardDeclined extends Error {}

/** Charges cards; in a real service this calls a payment gateway. */
export class Payments {
  readonly #attempts = new Map<string, number>()
  readonly charged: string[] = []

  charge({ id, card }: Order): void {
    const attempt = (this.#attempts.get(id) ?? 0) + 1
    this.#attempts.set(id, attempt)
    if (card === 'declined') throw new CardDeclined(`the card of order ${id} was declined`)
    if (card === 'slow-bank' && attempt === 1) throw new BankAway(id)
    this.charged.push(id)
  }
}

/** An error as an HTTP client would throw it. */
class BankAway extends Error {
  readonly code = 'ECONNREFUSED'

  constructor(id: string) {
    super(`connect ECONNREFUSED bank:443, order ${id}`)
  }
}
