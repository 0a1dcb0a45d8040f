import { setInterval as every } from 'node:timers/promises'
import { exponential } from '@redrive/core'
import { consume, type Logger } from '@redrive/runtime'
import type { Pool } from 'pg'
import { z } from 'zod'
import { openShopQueue } from '../composition/postgres.ts'
import { reasonOf } from '../failure.ts'

/** The queue of the shop, and the name of its source. A name of users would take the messages of their queue. */
export const SHOP_QUEUE = 'redrive-dev-shop'

/** The failures that a new shop has, by cause. */
export const SEEDS = { outage: 24, schema: 7, poison: 1 } as const
/** Orders that succeed, so that the queue shows that the shop works. */
const GOOD = 30
/** 2 s: often enough to see that it is live, seldom enough to read the list. */
const EVERY_MS = 2_000
/** Every 15th new order has a wrong amount: that group grows by one in 30 s. */
const WRONG_EVERY = 15

const orderSchema = z.object({
  order: z.number(),
  customer: z.string(),
  amount: z.number(),
  items: z.array(z.object({ article: z.string() })),
})
type Order = z.output<typeof orderSchema>
/** An order as a partner sends it: the schema rejects some of them. */
type SentOrder = Omit<Order, 'amount'> & { readonly amount: number | string }

/** A shop: a producer of orders, and a consumer that charges them. */
export interface Shop {
  /** Sends orders that fail, while the payment service does not respond. */
  sendFailures(): Promise<void>
  /** Ends the outage, and sends orders that succeed. */
  endOutage(): Promise<void>
  /** Sends a new order every 2 s, until the shop stops. */
  open(): void
  stop(): Promise<void>
}

/** Starts the consumer of the shop. */
export async function startShop(pool: Pool, logger: Logger): Promise<Shop> {
  const { transport, orders } = await openShopQueue(pool, SHOP_QUEUE)
  let isPaymentDown = false
  const consumer = await consume(
    transport,
    async ({ body }) => {
      pickFirst(body)
      if (isPaymentDown) throw refused()
    },
    { ...POLICY, schema: orderSchema, name: 'charge-order', logger },
  )
  const closing = new AbortController()
  let trickle: Promise<void> | undefined
  const send = async (sent: readonly SentOrder[]) => {
    const events = sent.map((body) => ({ body, type: 'order.placed', lane: body.customer }))
    await orders.addMany(pool, events)
    orders.wake()
  }
  const sendEvery = async () => {
    let count = 0
    for await (const _ of every(EVERY_MS, undefined, { signal: closing.signal })) {
      count += 1
      await send([count % WRONG_EVERY === 0 ? wrongOrder(nextNumber()) : goodOrder(nextNumber())])
    }
  }
  return {
    async sendFailures() {
      isPaymentDown = true
      await send([
        ...list(SEEDS.schema, wrongOrder),
        ...list(SEEDS.poison, poisonOrder),
        ...list(SEEDS.outage, goodOrder),
      ])
    },
    async endOutage() {
      isPaymentDown = false
      await send(list(GOOD, goodOrder))
    },
    open() {
      trickle ??= sendEvery().catch((error: unknown) => {
        if (!closing.signal.aborted)
          logger.error(`The shop stopped sending orders: ${reasonOf(error)}`)
      })
    },
    async stop() {
      closing.abort()
      await trickle
      await consumer.stop()
    },
  }
}

/**
 * With the defaults, the consumer would wait for the payment service, and nothing would be left to replay. This
 * shop gives up after three attempts, as many consumers do.
 */
const POLICY = {
  retry: {
    attempts: 3,
    backoff: exponential({ base: '50ms', cap: '200ms' }),
    unproven: 'off',
  },
  breaker: 'off',
  outage: 'off',
  retryBudget: 'off',
  flood: 'off',
} as const

/** Takes the first article from the stock. It has a bug: an order can be empty. */
function pickFirst({ items }: Order): string {
  const first = items[0] as Order['items'][number]
  return first.article.toUpperCase()
}

const refused = () =>
  Object.assign(new Error('connect ECONNREFUSED payments.shop.example:443'), {
    code: 'ECONNREFUSED',
  })

const list = (count: number, create: (order: number) => SentOrder): readonly SentOrder[] =>
  Array.from({ length: count }, () => create(nextNumber()))

const FIRST_ORDER = 1_001
let sentOrders = 0
const nextNumber = (): number => FIRST_ORDER + sentOrders++

const CUSTOMERS = ['ada', 'bob', 'cleo', 'dan', 'eve'] as const
const ARTICLES = ['tea', 'coffee', 'cocoa', 'sugar'] as const

const goodOrder = (order: number): SentOrder => ({
  order,
  customer: CUSTOMERS[order % CUSTOMERS.length] ?? 'ada',
  amount: 10 + (order % 40),
  items: [{ article: ARTICLES[order % ARTICLES.length] ?? 'tea' }],
})

/** One partner sends the amount as text, with a comma. */
const wrongOrder = (order: number): SentOrder => ({
  ...goodOrder(order),
  amount: `${10 + (order % 40)},90`,
})

const poisonOrder = (order: number): SentOrder => ({ ...goodOrder(order), items: [] })
