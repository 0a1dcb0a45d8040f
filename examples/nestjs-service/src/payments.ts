import { setTimeout as pause } from 'node:timers/promises'
import { Injectable, Logger } from '@nestjs/common'
import { z } from 'zod'

export const Order = z.object({ id: z.string(), amount: z.number(), card: z.string() })
export type Order = z.infer<typeof Order>

export class CardDeclined extends Error {}

/** Charges cards; in a real service this calls a payment gateway. */
@Injectable()
export class PaymentService {
  readonly #log = new Logger(PaymentService.name)

  async charge({ id, card }: Order, attempt: number): Promise<void> {
    this.#log.log(`charging ${id}, attempt ${attempt}`)
    if (card === 'declined') throw new CardDeclined(`the card of order ${id} was declined`)
    if (card === 'bank-away' && attempt === 1) {
      throw Object.assign(new Error('connect ECONNREFUSED bank:443'), { code: 'ECONNREFUSED' })
    }
    if (card === 'slow-bank') await pause(1_000)
    this.#log.log(`charged ${id}`)
  }
}
