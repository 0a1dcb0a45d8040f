import { business } from '@redrive/core'
import { outbox, postgres, postgresInbox } from '@redrive/postgres'
import { type Consumer, consume } from '@redrive/runtime'
import type { Pool } from 'pg'
import type { Config } from './config.ts'
import { OrderPlaced } from './orders.ts'
import { charge } from './payments.ts'

/** Each attempt holds a connection while the gateway answers: the pool must have as many and a few more. */
export const BILLING_CONCURRENCY = 10

/** The rules of the business say no. Trying again would not help; a person has to look at it. */
class OrderRefused extends Error {}

/** Charges every order that was placed, once, and says that it is paid. */
export function startBilling(pool: Pool, config: Config): Promise<Consumer> {
  const shopEvents = outbox({ queue: 'shop-events' })

  return consume(
    postgres({ pool, queue: 'billing', lease: config.leaseMs }),
    // Nothing is caught here: what it throws decides what becomes of the event.
    async ({ key, body }, { tx, signal }) => {
      const { orderId, amountCents, currency } = body
      if (!config.currencies.includes(currency)) {
        throw new OrderRefused(`There is no contract for payments in ${currency}.`)
      }
      // In the transaction of the inbox, with the fact that this event is handled.
      await tx.query(BOOK, [orderId, amountCents])
      await shopEvents.add(tx, {
        type: 'order.paid',
        key: `paid-${orderId}`,
        body: { orderId, amountCents },
      })
      // Last, when nothing of ours can fail any more but the commit. If it throws, all of it is undone.
      await charge(config.paymentsUrl, key, body, signal)
    },
    {
      schema: OrderPlaced,
      inbox: postgresInbox({ pool }),
      // While it is down its breaker pauses billing: events wait in their table, uncounted.
      dependency: 'payments',
      classify: [business(OrderRefused)],
      timeout: '5s',
      concurrency: BILLING_CONCURRENCY,
    },
  )
}

const BOOK = 'insert into shop.ledger (order_id, amount_cents) values ($1, $2)'
