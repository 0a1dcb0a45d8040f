import { business } from '@redrive/core'
import { outbox, postgres, postgresInbox } from '@redrive/postgres'
import { type Consumer, consume } from '@redrive/runtime'
import type { Pool } from 'pg'
import type { Config } from './config.ts'
import { OrderPlaced } from './orders.ts'
import { charge } from './payments.ts'

/**
 * Each attempt holds a connection until the gateway responds. So the pool needs this many
 * connections and a few more.
 */
export const BILLING_CONCURRENCY = 10

/** A business rule rejects the order. A retry would not help; a person has to check it. */
class OrderRefused extends Error {}

/** Charges every placed order once and adds the event that it is paid. */
export function startBilling(pool: Pool, config: Config): Promise<Consumer> {
  const shopEvents = outbox({ queue: 'shop-events' })

  return consume(
    postgres({ pool, queue: 'billing', lease: config.leaseMs }),
    // No errors are caught here. A thrown error decides what happens to the event.
    async ({ key, body }, { tx, signal }) => {
      const { orderId, amountCents, currency } = body
      if (!config.currencies.includes(currency)) {
        throw new OrderRefused(`The shop has no contract for payments in ${currency}.`)
      }
      // In the transaction of the inbox, together with the record that this event is handled.
      await tx.query(BOOK, [orderId, amountCents])
      await shopEvents.add(tx, {
        type: 'order.paid',
        key: `paid-${orderId}`,
        body: { orderId, amountCents },
      })
      // The charge is last, when only the commit can still fail. If it throws, the transaction is
      // rolled back.
      await charge(config.paymentsUrl, key, body, signal)
    },
    {
      schema: OrderPlaced,
      inbox: postgresInbox({ pool }),
      // While the gateway is down, its breaker pauses billing. Events wait in their table,
      // uncounted.
      dependency: 'payments',
      classify: [business(OrderRefused)],
      timeout: '5s',
      concurrency: BILLING_CONCURRENCY,
    },
  )
}

const BOOK = 'insert into shop.ledger (order_id, amount_cents) values ($1, $2)'
