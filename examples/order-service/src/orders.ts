import { type Outbox, outbox } from '@redrive/postgres'
import type { Pool } from 'pg'
import { z } from 'zod'
import { inTransaction } from './database.ts'

/** The event as billing reads it. */
export const OrderPlaced = z.object({
  orderId: z.string(),
  amountCents: z.number().int().positive(),
  currency: z.string().length(3),
})
export type OrderPlaced = z.infer<typeof OrderPlaced>

export interface Order extends OrderPlaced {
  readonly sku: string
}

/** Accepts orders; the route `POST /orders` would call it. */
export class Orders {
  readonly #pool: Pool
  readonly #billing: Outbox

  constructor(pool: Pool) {
    this.#pool = pool
    this.#billing = outbox({ queue: 'billing', pool })
  }

  /** Stores the order, its event and the stock: all three, or none. */
  async place({ sku, ...placed }: Order): Promise<void> {
    const { orderId, amountCents, currency } = placed
    await inTransaction(this.#pool, async (tx) => {
      await tx.query(INSERT, [orderId, sku, amountCents, currency])
      await this.#billing.add(tx, {
        type: 'order.placed',
        // The same key however often this event is added, retried or replayed, so it is charged
        // once.
        key: `charge-${orderId}`,
        body: placed satisfies OrderPlaced,
      })
      // Fails when the product is sold out, and rolls back everything above.
      await tx.query('update shop.products set stock = stock - 1 where sku = $1', [sku])
    })
    // After the commit, and only a hint: without it billing polls within a second.
    this.#billing.wake()
  }
}

const INSERT = 'insert into shop.orders (id, sku, amount_cents, currency) values ($1, $2, $3, $4)'
