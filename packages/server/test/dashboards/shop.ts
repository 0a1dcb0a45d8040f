import { business, exponential } from '@redrive/core'
import { rabbitmq } from '@redrive/rabbitmq'
import { type Consumer, consume, createEmitter, type Emitter, nonFailing } from '@redrive/runtime'
import { memoryInbox, recordingDeadLetters, recordingSink } from '@redrive/testing'
import { type ConfirmChannel, connect } from 'amqplib'

/** The causes of failures that the drill needs: each makes other metrics. */
export type Kind = 'good' | 'flaky' | 'declined' | 'wrong' | 'stuck'

class CardDeclined extends Error {
  override readonly name = 'CardDeclined'
}

const timeout = () => Object.assign(new Error('read ETIMEDOUT'), { code: 'ETIMEDOUT' })
const refused = () =>
  Object.assign(new Error('connect ECONNREFUSED payments:443'), { code: 'ECONNREFUSED' })

/** Two consumers and an emitter that fail on request. */
export interface Shop {
  readonly orders: string
  readonly place: (kind: Kind) => void
  /** While it is true, the dependency of the orders refuses all calls. */
  isOut: boolean
  /** While it is true, the sink of logs accepts nothing. */
  isSinkDown: boolean
  /** After it is set, declined orders with an even number succeed. */
  isFixed: boolean
  readonly emit: () => void
  readonly close: () => Promise<void>
}

export async function openShop(url: string, orders: string): Promise<Shop> {
  const connection = await connect(url)
  const channel = await connection.createConfirmChannel()
  const flags = { isOut: false, isSinkDown: false, isFixed: false }
  const consumer = await startConsumer(url, orders, flags)
  const events = startEmitter(flags)
  let placed = 0
  return Object.assign(flags, {
    orders,
    place(kind: Kind) {
      placed += 1
      const body = Buffer.from(JSON.stringify({ kind, number: placed }))
      channel.sendToQueue(orders, body, { messageId: `order-${placed}`, persistent: true })
    },
    emit: () => emitOne(events),
    async close() {
      await consumer.stop({ drain: 0 })
      await events.close()
      await removeQueues(channel, orders)
      await connection.close()
    },
  })
}

type Flags = Pick<Shop, 'isOut' | 'isSinkDown' | 'isFixed'>

const startConsumer = (url: string, queue: string, flags: Flags): Promise<Consumer> =>
  consume(
    rabbitmq({ url, queue }),
    ({ body }, { runs }) => {
      const { kind, number } = body as { kind: Kind; number: number }
      if (flags.isOut) throw refused()
      if (kind === 'stuck' || (kind === 'flaky' && runs < 1)) throw timeout()
      if (kind === 'wrong') throw new TypeError('price is not a number')
      const isStillDeclined = !flags.isFixed || number % 2 === 1
      if (kind === 'declined' && isStillDeclined) throw new CardDeclined('the card was declined')
    },
    {
      name: 'billing',
      dependency: 'payments',
      inbox: memoryInbox(),
      logger: 'off',
      concurrency: 20,
      classify: [business(CardDeclined)],
      retry: { attempts: 3, backoff: exponential({ base: '200ms', cap: '1s' }) },
      // Small, so that some retries exceed it.
      retryBudget: { ratio: 0.01, floorPerSecond: 0.5, burst: 2 },
      poison: { repeats: 2 },
      flood: { burst: 5, perMinute: 60 },
    },
  )

function startEmitter(flags: Flags): Emitter {
  const logs = recordingSink({
    name: 'logs',
    onSend: () => {
      if (flags.isSinkDown) throw refused()
    },
  })
  return createEmitter({
    sinks: { logs, audit: recordingSink({ name: 'audit' }) },
    store: recordingDeadLetters(),
    queue: { maxEvents: 1_000, onFull: 'store' },
    rateLimit: { perSecond: 20 },
    // Stored when they exceed the rate limit; others are dropped.
    filter: { keep: [/^payment\./] },
    autoReplay: { schedule: '*/2 * * * * *' },
    policy: { retry: { attempts: 2, backoff: exponential({ base: '50ms', cap: '100ms' }) } },
  })
}

function emitOne(events: Emitter): void {
  const event = { type: 'order.placed', data: {} }
  void events.emit(event)
  void events.emit({ type: 'payment.taken', data: {} })
  void nonFailing(() => events.emit(event), { job: 'nightly-report' })
}

async function removeQueues(channel: ConfirmChannel, orders: string): Promise<void> {
  for (const queue of [orders, `${orders}.dlq`, `${orders}.quarantine`]) {
    await channel.deleteQueue(queue)
  }
}
