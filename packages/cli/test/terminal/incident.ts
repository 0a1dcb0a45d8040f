import { randomUUID } from 'node:crypto'
import { exponential } from '@redrive/core'
import { dropDatabase, emptyDatabase, services, urlOf } from '@redrive/dev-support'
import { rabbitmq } from '@redrive/rabbitmq'
import { type Clock, type Consumer, consume, systemClock } from '@redrive/runtime'
import { until } from '@redrive/testing'
import { connect } from 'amqplib'
import { z } from 'zod'

export const QUEUE = 'orders'
const ORDERS = 30
/** Every fourth order comes from a shop that sends amounts as text. */
const isMisshapen = (at: number): boolean => at % 4 === 3

/**
 * 70 s between two orders. The first 8 digits of a dead letter id differ after 65 s, so each test run shows the
 * same number of digits. The last order failed 15 min ago and the first one 49 min ago. All ages have two
 * digits, even if the test takes ten minutes.
 */
const APART_MS = 70_000
const LAST_AGE_MS = 15 * 60_000

export interface Incident {
  /** Address of a separate virtual host, so that the queues can have common names. */
  readonly amqp: string
  readonly vhost: string
  readonly database: string
  /** Starts a consumer that works: payments are available, and it reads amounts in both forms. */
  fix(): Promise<void>
  /** Returns the handled orders, sorted by number. */
  charged(): readonly number[]
}

export const EXPECTED: readonly number[] = Array.from({ length: ORDERS }, (_, at) => 1_001 + at)

/** Clean-up functions. The last one runs first. */
export type Ends = (() => Promise<unknown>)[]

/** Creates thirty dead letters that failed in two ways. */
export async function incident(ends: Ends): Promise<Incident> {
  const [{ amqp, vhost }, database] = await Promise.all([virtualHost(ends), ownDatabase(ends)])
  const charged: number[] = []
  let ageMs = LAST_AGE_MS + ORDERS * APART_MS
  const clock: Clock = { ...systemClock, now: () => systemClock.now() - ageMs }
  const broken = await consume(rabbitmq({ url: amqp, queue: QUEUE }), refused, {
    schema: z.object({ order: z.number(), amount: z.number() }),
    // All orders must become dead letters, so no guard may delay them.
    breaker: 'off',
    outage: 'off',
    retryBudget: 'off',
    clock,
    retry: { attempts: 3, backoff: exponential({ base: '10ms', cap: '20ms', jitter: 'none' }) },
  })
  let consumer: Consumer = broken
  ends.push(() => consumer.stop())
  await sendOneByOne(amqp, () => {
    ageMs -= APART_MS
  })
  return {
    amqp,
    vhost,
    database,
    async fix() {
      await consumer.stop()
      consumer = await consume(rabbitmq({ url: amqp, queue: QUEUE }), ({ body }) => {
        charged.push((body as { order: number }).order)
      })
    },
    charged: () => charged.toSorted((one, other) => one - other),
  }
}

function refused(): never {
  throw Object.assign(new Error('connect ECONNREFUSED payments-api:443'), { code: 'ECONNREFUSED' })
}

/** Creates a separate virtual host. */
export async function virtualHost(ends: Ends) {
  const url = await urlOf('rabbitmq')
  const vhost = `terminal-${randomUUID().slice(0, 8)}`
  await services('do', 'rabbitmq', 'ctl', 'add_vhost', vhost)
  ends.push(() => services('do', 'rabbitmq', 'ctl', 'delete_vhost', vhost))
  await services('do', 'rabbitmq', 'ctl', 'set_permissions', '-p', vhost, 'guest', '.*', '.*', '.*')
  return { amqp: `${url}/${vhost}`, vhost }
}

/** Creates a separate database. */
export async function ownDatabase(ends: Ends): Promise<string> {
  const url = await emptyDatabase(`redrive_terminal_${randomUUID().slice(0, 8)}`)
  ends.push(() => dropDatabase(url))
  return url
}

/** Waits until each order is a dead letter before it sends the next one. This keeps their order stable. */
async function sendOneByOne(amqp: string, before: () => void): Promise<void> {
  const model = await connect(amqp)
  const channel = await model.createConfirmChannel()
  for (const [at, order] of EXPECTED.entries()) {
    before()
    const amount = 10 + at
    const body = { order, amount: isMisshapen(at) ? `${amount}.00` : amount }
    channel.sendToQueue(QUEUE, Buffer.from(JSON.stringify(body)), {
      messageId: `order-${order}`,
      type: 'order.placed',
      contentType: 'application/json',
      headers: { 'x-shop': isMisshapen(at) ? 'north' : 'south' },
    })
    await until(`${at + 1} dead letters`, async () => {
      const { messageCount } = await channel.checkQueue(`${QUEUE}.dlq`)
      return messageCount === at + 1
    })
  }
  await model.close()
}
