import { decodeHeaders, type FailureClass, RedriveError } from '@redrive/core'
import type {
  DeadLetterSource,
  DrainedBatch,
  DrainedDeadLetter,
  ReplayMessage,
} from '@redrive/runtime'
import type { Channel, ConsumeMessage } from 'amqplib'
import { messageCount } from './declare.ts'
import { readForeignDeath } from './foreign.ts'
import { envelopeOf, type RabbitMqDelivery, replayOf, toDelivery } from './headers.ts'
import { Link, type Session } from './link.ts'
import type { ResolvedSourceOptions } from './options.ts'
import { Publisher } from './publish.ts'
import { Unsettled } from './unsettled.ts'

/** 2 s without the next dead letter: another control plane took it first. */
const QUIET_MS = 2_000

/** The control plane's side: drains dead letters, ours or foreign, and publishes replays. */
export class RabbitMqSource implements DeadLetterSource {
  readonly source: string
  readonly #options: ResolvedSourceOptions
  readonly #link: Link<Channel>
  readonly #publisher: Publisher
  #unsettled: Unsettled | undefined
  #opened: Promise<unknown> | undefined

  constructor(options: ResolvedSourceOptions) {
    const { urls, connect, confirmTimeoutMs } = options
    this.source = options.queue
    this.#options = options
    this.#link = new Link<Channel>({
      urls,
      connect: (url) => connect(url, 'drain'),
      prepare: (connection) => connection.createChannel(),
      onLost: () => {
        this.#unsettled?.abandon()
        this.#unsettled = undefined
      },
    })
    this.#publisher = new Publisher({ urls, connect, confirmTimeoutMs, onBlocked: () => undefined })
  }

  async drain({ most }: { readonly most: number }): Promise<DrainedBatch> {
    const { connection, channel, unsettled } = await this.#ready()
    const drained: RabbitMqDelivery[] = []
    const deadLetters: DrainedDeadLetter[] = []
    for (const queue of this.#options.deadLetterQueues) {
      const waiting = (await messageCount(connection, queue)) ?? 0
      const wanted = Math.min(most - drained.length, waiting)
      if (wanted <= 0) continue
      for (const raw of await take(channel, queue, wanted)) {
        const delivery = toDelivery(queue, raw)
        unsettled.add(delivery)
        drained.push(delivery)
        deadLetters.push(this.#read(queue, delivery))
      }
    }
    return {
      deadLetters,
      release: async () => {
        const isOurs = drained.every((delivery) => unsettled.settle(delivery))
        unsettled.flush()
        if (!isOurs) throw notReleased(this.source)
      },
      abandon: async () => {
        for (const delivery of drained) unsettled.giveBack(delivery)
      },
    }
  }

  async publish({ deadLetter, replayId }: ReplayMessage): Promise<void> {
    await this.#ready()
    const { exchange, routingKey } =
      this.#options.replayTo === 'exchange'
        ? addressIn(deadLetter)
        : { exchange: '', routingKey: deadLetter.origin }
    const copy = replayOf(deadLetter, replayId)
    await this.#publisher.inTime(this.#publisher.send({ exchange, routingKey, ...copy }))
  }

  async depth(): Promise<number> {
    const { connection, unsettled } = await this.#ready()
    let total = unsettled.all().length
    for (const queue of this.#options.deadLetterQueues) {
      total += (await messageCount(connection, queue)) ?? 0
    }
    return total
  }

  async close(): Promise<void> {
    this.#unsettled?.flush()
    await Promise.all([this.#link.close(), this.#publisher.close()])
  }

  /** Connects when it is first needed, and waits a little while a lost connection is made anew. */
  async #ready(): Promise<Session<Channel> & { readonly unsettled: Unsettled }> {
    this.#opened ??= Promise.all([this.#link.open(), this.#publisher.open()])
    try {
      await this.#opened
    } catch (error) {
      this.#opened = undefined
      throw error
    }
    const { connection, channel } = await this.#link.whenReady(this.#options.confirmTimeoutMs)
    this.#unsettled ??= new Unsettled(channel)
    return { connection, channel, unsettled: this.#unsettled }
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

const notReleased = (source: string) =>
  new RedriveError(
    'DELIVERY_LOST',
    `${source}: the connection was lost before the dead letters were released. They are still in the queue and will be drained again.`,
  )
