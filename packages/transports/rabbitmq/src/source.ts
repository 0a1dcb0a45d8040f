import { decodeHeaders, type FailureClass, RedriveError } from '@redrive/core'
import type {
  DeadLetterSource,
  DrainedBatch,
  DrainedDeadLetter,
  ReplayMessage,
} from '@redrive/runtime'
import type { Channel, ChannelModel, ConsumeMessage } from 'amqplib'
import { messageCount } from './declare.ts'
import { readForeignDeath } from './foreign.ts'
import { envelopeOf, type RabbitMqDelivery, replayOf, toDelivery } from './headers.ts'
import { closeChannel, Link } from './link.ts'
import type { ResolvedSourceOptions } from './options.ts'
import { Publisher } from './publish.ts'
import { Unsettled } from './unsettled.ts'

/** 2 s without the next dead letter: another control plane took it first. */
const QUIET_MS = 2_000

/** The control plane's side: drains dead letters, ours or foreign, and publishes replays. */
export class RabbitMqSource implements DeadLetterSource {
  readonly source: string
  readonly replay = 'copy'
  readonly #options: ResolvedSourceOptions
  readonly #link: Link<Channel>
  readonly #publisher: Publisher
  /** What is drained and not yet released; each batch has a channel of its own. */
  readonly #batches = new Set<Unsettled>()

  constructor(options: ResolvedSourceOptions) {
    const { urls, connect, confirmTimeoutMs } = options
    this.source = options.queue
    this.#options = options
    this.#link = new Link<Channel>({
      urls,
      connect: (url) => connect(url, 'drain'),
      prepare: (connection) => connection.createChannel(),
      onLost: () => this.#batches.clear(),
    })
    this.#publisher = new Publisher({ urls, connect, confirmTimeoutMs, onBlocked: () => undefined })
  }

  async drain({ most }: { readonly most: number }): Promise<DrainedBatch> {
    const connection = await this.#connected()
    const channel = await connection.createChannel()
    channel.on('error', () => undefined)
    const unsettled = new Unsettled(channel)
    channel.on('close', () => this.#batches.delete(unsettled))
    this.#batches.add(unsettled)
    try {
      const drained = await this.#take(connection, channel, unsettled, most)
      return this.#batch(channel, unsettled, drained)
    } catch (error) {
      await end(channel)
      throw error
    }
  }

  async #take(
    connection: ChannelModel,
    channel: Channel,
    unsettled: Unsettled,
    most: number,
  ): Promise<readonly Drained[]> {
    const drained: Drained[] = []
    for (const queue of this.#options.deadLetterQueues) {
      const waiting = (await messageCount(connection, queue)) ?? 0
      const wanted = Math.min(most - drained.length, waiting)
      if (wanted <= 0) continue
      for (const raw of await take(channel, queue, wanted)) {
        const delivery = toDelivery(queue, raw)
        unsettled.add(delivery)
        drained.push({ delivery, deadLetter: this.#read(queue, delivery) })
      }
    }
    return drained
  }

  #batch(channel: Channel, unsettled: Unsettled, drained: readonly Drained[]): DrainedBatch {
    let isOver = false
    const once = async (act: () => void) => {
      if (isOver) return
      isOver = true
      if (!this.#batches.has(unsettled) && drained.length > 0) throw lostBefore(this.source)
      act()
      unsettled.flush()
      await end(channel)
    }
    return {
      deadLetters: drained.map(({ deadLetter }) => deadLetter),
      release: () => once(() => drained.forEach(({ delivery }) => unsettled.settle(delivery))),
      abandon: () => once(() => drained.forEach(({ delivery }) => unsettled.giveBack(delivery))),
    }
  }

  async publish({ deadLetter, replayId }: ReplayMessage): Promise<void> {
    await this.#publisher.open()
    const { exchange, routingKey } =
      this.#options.replayTo === 'exchange'
        ? addressIn(deadLetter)
        : { exchange: '', routingKey: deadLetter.origin }
    const copy = replayOf(deadLetter, replayId)
    await this.#publisher.inTime(this.#publisher.send({ exchange, routingKey, ...copy }))
  }

  async depth(): Promise<number> {
    const connection = await this.#connected()
    let total = 0
    for (const unsettled of this.#batches) total += unsettled.all().length
    for (const queue of this.#options.deadLetterQueues) {
      total += (await messageCount(connection, queue)) ?? 0
    }
    return total
  }

  async close(): Promise<void> {
    await Promise.all([this.#link.close(), this.#publisher.close()])
  }

  /** Connects when it is first needed, and waits a little while a lost connection is made anew. */
  async #connected(): Promise<ChannelModel> {
    await this.#link.open()
    return (await this.#link.whenReady(this.#options.confirmTimeoutMs)).connection
  }

  #read(queue: string, delivery: RabbitMqDelivery): DrainedDeadLetter {
    const headers = delivery.raw.properties.headers ?? {}
    const decoded = decodeHeaders(headers)
    const isOurs = decoded.source !== undefined
    const foreign = isOurs ? undefined : readForeignDeath(headers)
    const origin = decoded.source ?? foreign?.origin ?? this.source
    const cycle = foreign?.cycle ?? delivery.cycle
    const failureClass: FailureClass = cycle.history.at(-1)?.class ?? 'unknown'
    const { raw, ...rest } = delivery
    return {
      delivery: { ...rest, source: origin, cycle },
      origin,
      envelope: envelopeOf(raw),
      quarantined: this.#options.quarantineQueues.includes(queue),
      class: failureClass,
      reason: decoded.reason ?? foreign?.reason ?? 'unknown',
    }
  }
}

/** Takes that many messages off a queue, unacknowledged; fewer when someone else is quicker. */
async function take(
  channel: Channel,
  queue: string,
  wanted: number,
): Promise<readonly ConsumeMessage[]> {
  const taken: ConsumeMessage[] = []
  const { promise: enough, resolve } = Promise.withResolvers<void>()
  let quiet = setTimeout(resolve, QUIET_MS)
  const onMessage = (raw: ConsumeMessage | null) => {
    clearTimeout(quiet)
    if (raw !== null) taken.push(raw)
    if (raw === null || taken.length >= wanted) resolve()
    else quiet = setTimeout(resolve, QUIET_MS)
  }
  await channel.prefetch(wanted)
  const { consumerTag } = await channel.consume(queue, onMessage)
  await enough
  clearTimeout(quiet)
  await channel.cancel(consumerTag)
  return taken
}

function addressIn({ envelope, origin }: DrainedDeadLetter) {
  const { exchange = '', routingKey = origin } = envelope
  return { exchange, routingKey }
}

interface Drained {
  readonly delivery: RabbitMqDelivery
  readonly deadLetter: DrainedDeadLetter
}

/** Its end returns what is still on it. A connection that broke has ended it already. */
const end = (channel: Channel) => closeChannel(channel).catch(() => undefined)

const lostBefore = (source: string) =>
  new RedriveError(
    'DELIVERY_LOST',
    `${source}: the connection was lost before the dead letters were released. They are still in the queue and will be drained again.`,
  )
