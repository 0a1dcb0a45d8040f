import { withTimeout } from '@redrive/runtime/internal'
import type { Channel, ChannelModel, ConsumeMessage } from 'amqplib'
import { messageCount } from './declare.ts'
import type { RabbitMqDelivery } from './delivery.ts'
import { answered, CLOSE_MS, closeChannel } from './connection/connection.ts'
import { headerTypesOf } from './connection/wire-headers.ts'
import { readDelivery } from './unreadable.ts'
import { UnackedDeliveries } from './unacked.ts'

export interface HoldOptions {
  readonly queues: readonly string[]
  readonly limit: number
  /** Maximum wait for the next message. After it, another consumer has taken the rest. */
  readonly quietMs: number
}

/** An unacknowledged message and the queue it came from. */
export interface TakenMessage {
  readonly queue: string
  readonly delivery: RabbitMqDelivery
}

/** Creates the error for a channel that was lost with its unacknowledged messages. */
export type OnLost = (cause?: unknown) => Error

/** Unacknowledged messages on a separate channel. Closing the channel returns unreleased messages. */
export class DrainChannel {
  readonly taken: readonly TakenMessage[]
  readonly #channel: Channel
  readonly #unsettled: UnackedDeliveries
  #isLost = false
  #isEnded = false

  constructor(channel: Channel, unsettled: UnackedDeliveries, taken: readonly TakenMessage[]) {
    this.taken = taken
    this.#channel = channel
    this.#unsettled = unsettled
    channel.on('close', () => {
      this.#isLost = true
      this.#unsettled.abandon()
    })
  }

  get unackedCount(): number {
    return this.#unsettled.all().length
  }

  release(delivery: RabbitMqDelivery): void {
    this.#unsettled.settle(delivery)
  }

  /** Acknowledges all messages; rejects when the broker may not have received the acknowledgements. */
  releaseAll(onLost: OnLost): Promise<void> {
    return this.#finish(onLost, async () => {
      for (const { delivery } of this.taken) this.#unsettled.settle(delivery)
      this.#unsettled.flush()
      // The broker does not confirm an acknowledgement, but it confirms the next request.
      await answered(this.#channel.prefetch(1))
    })
  }

  abandonAll(onLost: OnLost): Promise<void> {
    return this.#finish(onLost, async () => {
      for (const { delivery } of this.taken) this.#unsettled.returnToQueue(delivery)
    })
  }

  async #finish(onLost: OnLost, act: () => Promise<void>): Promise<void> {
    if (this.#isEnded) return
    this.#isEnded = true
    if (this.taken.length === 0) return closeQuietly(this.#channel)
    if (this.#isLost) throw onLost()
    try {
      await act()
    } catch (error) {
      throw onLost(error)
    } finally {
      await closeQuietly(this.#channel)
    }
  }
}

/** Takes up to `limit` messages, from one queue after the other. */
export async function hold(connection: ChannelModel, options: HoldOptions): Promise<DrainChannel> {
  const channel = await answered(connection.createChannel())
  channel.on('error', () => undefined)
  const unsettled = new UnackedDeliveries(channel)
  const taken: TakenMessage[] = []
  const drainChannel = new DrainChannel(channel, unsettled, taken)
  try {
    for (const queue of options.queues) {
      const waiting = (await messageCount(connection, queue)) ?? 0
      const wanted = Math.min(options.limit - taken.length, waiting)
      if (wanted <= 0) continue
      for (const raw of await take(channel, queue, wanted, options.quietMs)) {
        const delivery = readDelivery(queue, raw, headerTypesOf(channel, raw))
        unsettled.add(delivery)
        taken.push({ queue, delivery })
      }
    }
    return drainChannel
  } catch (error) {
    await closeQuietly(channel)
    throw error
  }
}

/** Takes up to `wanted` messages from a queue, unacknowledged; fewer when another consumer takes some. */
async function take(
  channel: Channel,
  queue: string,
  wanted: number,
  quietMs: number,
): Promise<readonly ConsumeMessage[]> {
  const taken: ConsumeMessage[] = []
  const { promise: enough, resolve } = Promise.withResolvers<void>()
  let quietTimer: NodeJS.Timeout | undefined
  const restartQuietTimer = () => {
    clearTimeout(quietTimer)
    quietTimer = setTimeout(resolve, quietMs)
  }
  const onMessage = (raw: ConsumeMessage | null) => {
    if (raw !== null) taken.push(raw)
    if (raw === null || taken.length >= wanted) resolve()
    else restartQuietTimer()
  }
  try {
    await answered(channel.prefetch(wanted))
    const { consumerTag } = await answered(channel.consume(queue, onMessage))
    // Not earlier: before the subscription is confirmed, silence means a slow broker, not an empty queue.
    if (taken.length < wanted) restartQuietTimer()
    await enough
    await answered(channel.cancel(consumerTag))
    return taken
  } finally {
    clearTimeout(quietTimer)
  }
}

/** Closes the channel, which returns its messages. Errors are ignored: a broken connection closed it already. */
async function closeQuietly(channel: Channel): Promise<void> {
  await withTimeout(Promise.allSettled([closeChannel(channel)]), CLOSE_MS, () => undefined)
}
