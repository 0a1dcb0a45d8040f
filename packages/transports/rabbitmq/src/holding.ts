import { withTimeout } from '@redrive/runtime'
import type { Channel, ChannelModel, ConsumeMessage } from 'amqplib'
import { messageCount } from './declare.ts'
import { type RabbitMqDelivery, toDelivery } from './headers.ts'
import { answered, CLOSE_MS, closeChannel } from './link.ts'
import { Unsettled } from './unsettled.ts'

export interface HoldOptions {
  readonly queues: readonly string[]
  readonly most: number
  /** So long without the next one: someone else took it first. */
  readonly quietMs: number
}

/** A message in hand, and where it was. */
export interface Taken {
  readonly queue: string
  readonly delivery: RabbitMqDelivery
}

/** What to say when the channel is gone, and with it what was in hand. */
export type OnLost = (cause?: unknown) => Error

/** Messages in hand on a channel of their own: its end returns what is not released. */
export class Holding {
  readonly taken: readonly Taken[]
  readonly #channel: Channel
  readonly #unsettled: Unsettled
  #isLost = false
  #isOver = false

  constructor(channel: Channel, unsettled: Unsettled, taken: readonly Taken[]) {
    this.taken = taken
    this.#channel = channel
    this.#unsettled = unsettled
    channel.on('close', () => {
      this.#isLost = true
      this.#unsettled.abandon()
    })
  }

  get inHand(): number {
    return this.#unsettled.all().length
  }

  release(delivery: RabbitMqDelivery): void {
    this.#unsettled.settle(delivery)
  }

  /** Rejects when the broker may not have heard of it. */
  releaseAll(onLost: OnLost): Promise<void> {
    return this.#end(onLost, async () => {
      for (const { delivery } of this.taken) this.#unsettled.settle(delivery)
      this.#unsettled.flush()
      // An acknowledgement has no answer; what is asked after it has one.
      await answered(this.#channel.prefetch(1))
    })
  }

  abandonAll(onLost: OnLost): Promise<void> {
    return this.#end(onLost, async () => {
      for (const { delivery } of this.taken) this.#unsettled.giveBack(delivery)
    })
  }

  async #end(onLost: OnLost, act: () => Promise<void>): Promise<void> {
    if (this.#isOver) return
    this.#isOver = true
    if (this.taken.length === 0) return end(this.#channel)
    if (this.#isLost) throw onLost()
    try {
      await act()
    } catch (error) {
      throw onLost(error)
    } finally {
      await end(this.#channel)
    }
  }
}

/** Takes what is there, as many as wanted, from one queue after the other. */
export async function hold(connection: ChannelModel, options: HoldOptions): Promise<Holding> {
  const channel = await answered(connection.createChannel())
  channel.on('error', () => undefined)
  const unsettled = new Unsettled(channel)
  const taken: Taken[] = []
  const holding = new Holding(channel, unsettled, taken)
  try {
    for (const queue of options.queues) {
      const waiting = (await messageCount(connection, queue)) ?? 0
      const wanted = Math.min(options.most - taken.length, waiting)
      if (wanted <= 0) continue
      for (const raw of await take(channel, queue, wanted, options.quietMs)) {
        const delivery = toDelivery(queue, raw)
        unsettled.add(delivery)
        taken.push({ queue, delivery })
      }
    }
    return holding
  } catch (error) {
    await end(channel)
    throw error
  }
}

/** Takes that many messages off a queue, unacknowledged; fewer when someone else is quicker. */
async function take(
  channel: Channel,
  queue: string,
  wanted: number,
  quietMs: number,
): Promise<readonly ConsumeMessage[]> {
  const taken: ConsumeMessage[] = []
  const { promise: enough, resolve } = Promise.withResolvers<void>()
  let quiet: NodeJS.Timeout | undefined
  const rest = () => {
    clearTimeout(quiet)
    quiet = setTimeout(resolve, quietMs)
  }
  const onMessage = (raw: ConsumeMessage | null) => {
    if (raw !== null) taken.push(raw)
    if (raw === null || taken.length >= wanted) resolve()
    else rest()
  }
  try {
    await answered(channel.prefetch(wanted))
    const { consumerTag } = await answered(channel.consume(queue, onMessage))
    // Not before: until it has subscribed us, a slow broker is not a queue that someone else emptied.
    if (taken.length < wanted) rest()
    await enough
    await answered(channel.cancel(consumerTag))
    return taken
  } finally {
    clearTimeout(quiet)
  }
}

/** Returns what is still on the channel. An error is ignored: a broken connection has ended the channel already. */
async function end(channel: Channel): Promise<void> {
  await withTimeout(Promise.allSettled([closeChannel(channel)]), CLOSE_MS, () => undefined)
}
