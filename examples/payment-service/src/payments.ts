import { setTimeout as after } from 'node:timers/promises'

export interface Order {
  readonly id: string
  readonly amount: number
  readonly card: string
}

export class Declined extends Error {}

/** The payment provider; in a real service this is a call over the network. */
export class PaymentProvider {
  /** Response time of the provider. */
  static readonly #ANSWER_MS = 5
  charges = 0
  refunds = 0

  async charge({ id, card }: Order): Promise<string> {
    await after(PaymentProvider.#ANSWER_MS)
    if (card === EMPTY_CARD) throw new Declined('the card has no money left')
    this.charges += 1
    return `auth-${id}`
  }

  async refund(_order: Order): Promise<void> {
    await after(PaymentProvider.#ANSWER_MS)
    this.refunds += 1
  }
}

export const GOOD_CARD = '4242'
export const EMPTY_CARD = '0002'
