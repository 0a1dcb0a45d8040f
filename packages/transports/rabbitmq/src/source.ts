import { decodeHeaders, type FailureClass, isRedriveError, RedriveError } from '@redrive/core'
import {
  type ConfirmationBatch,
  type DeadLetterSource,
  type DrainedBatch,
  type DrainedDeadLetter,
  type ReplayConfirmation,
  type ReplayMessage,
  readConfirmation,
} from '@redrive/runtime'
import type { Channel, ChannelModel } from 'amqplib'
import { Absent } from './absent.ts'
import { messageCount } from './declare.ts'
import { readForeignDeath } from './foreign.ts'
import { envelopeOf, namingOf, type RabbitMqDelivery, replayOf } from './headers.ts'
import { type Holding, hold, type OnLost } from './holding.ts'
import { Link } from './link.ts'
import {
  type RabbitMqSourceOptions,
  type ResolvedSourceOptions,
  resolveSourceOptions,
} from './options.ts'
import { Publisher } from './publish.ts'

/** 2 s without the next dead letter: another control plane took it first. */
const QUIET_MS = 2_000
/** 100 ms without the next confirmation: they are asked for several times a second. */
const CONFIRMATION_QUIET_MS = 100

/** The control plane's side: drains dead letters, ours or foreign, publishes replays and hears of them. */
export class RabbitMqSource implements DeadLetterSource {
  readonly source: string
  readonly replay = 'copy'
  readonly #options: ResolvedSourceOptions
  readonly #link: Link<Channel>
  readonly #publisher: Publisher
  /** Dead letters that are drained and not yet released. */
  readonly #drained = new Set<Holding>()
  readonly #absent = new Absent()

  constructor(options: ResolvedSourceOptions) {
    const { urls, connect, confirmTimeoutMs } = options
    this.source = options.queue
    this.#options = options
    this.#link = new Link<Channel>({
      urls,
      connect: (url) => connect(url, 'drain'),
      prepare: (connection) => connection.createChannel(),
      onLost: () => this.#drained.clear(),
    })
    this.#publisher = new Publisher({ urls, connect, confirmTimeoutMs, onBlocked: () => undefined })
  }

  async drain({ most }: { readonly most: number }): Promise<DrainedBatch> {
    const queues = this.#options.deadLetterQueues
    const holding = await this.#ask((connection) =>
      hold(connection, { queues, most, quietMs: QUIET_MS }),
    )
    this.#drained.add(holding)
    return {
      deadLetters: holding.taken.map(({ queue, delivery }) => this.#read(queue, delivery)),
      ...this.#ending(holding, 'dead letters'),
    }
  }

  #ending(holding: Holding, what: string): Pick<DrainedBatch, 'release' | 'abandon'> {
    const over = (ended: Promise<void>) => ended.finally(() => this.#drained.delete(holding))
    const onLost: OnLost = (cause) => lostBefore(this.source, what, cause)
    return {
      release: () => over(holding.releaseAll(onLost)),
      abandon: () => over(holding.abandonAll(onLost)),
    }
  }

  async confirmations({ most }: { readonly most: number }): Promise<ConfirmationBatch> {
    const queue = this.#options.confirmationQueue
    const now = performance.now()
    if (!this.#absent.isDue(now)) return NO_CONFIRMATIONS
    const waiting = await this.#ask((connection) => messageCount(connection, queue))
    this.#absent.note(waiting !== undefined, now)
    if (waiting === undefined || waiting === 0) return NO_CONFIRMATIONS
    const quietMs = CONFIRMATION_QUIET_MS
    const holding = await this.#ask((connection) =>
      hold(connection, { queues: [queue], most, quietMs }),
    )
    const confirmations = readIn(holding)
    const batch = { confirmations, ...this.#ending(holding, 'confirmations') }
    if (confirmations.length > 0) return batch
    await batch.release()
    return NO_CONFIRMATIONS
  }

  async publish({ deadLetter, replayId }: ReplayMessage): Promise<void> {
    await this.#publisher.open()
    const { exchange, routingKey } =
      this.#options.replayTo === 'exchange'
        ? addressIn(deadLetter)
        : { exchange: '', routingKey: deadLetter.origin }
    const copy = replayOf(deadLetter, replayId)
    await this.#publisher.inTime(this.#publisher.send({ exchange, routingKey, ...copy }))
    this.#absent.expect()
  }

  async depth(): Promise<number> {
    let total = 0
    for (const { inHand } of this.#drained) total += inHand
    for (const queue of this.#options.deadLetterQueues) {
      total += (await this.#ask((connection) => messageCount(connection, queue))) ?? 0
    }
    return total
  }

  /** Messages that wait in the queue itself: how far the consumers are behind. */
  async lag(): Promise<number> {
    return (await this.#ask((connection) => messageCount(connection, this.source))) ?? 0
  }

  async close(): Promise<void> {
    await Promise.all([this.#link.close(), this.#publisher.close()])
  }

  /**
   * Connects when it is first needed, and waits a little while a lost connection is made anew. One that
   * hangs is left: whoever asks next asks another node.
   */
  async #ask<T>(work: (connection: ChannelModel) => Promise<T>): Promise<T> {
    await this.#link.open()
    const { connection, channel } = await this.#link.whenReady(this.#options.confirmTimeoutMs)
    try {
      return await work(connection)
    } catch (error) {
      if (isRedriveError(error, 'UNREACHABLE')) this.#link.reset(channel, error)
      throw error
    }
  }

  #read(queue: string, delivery: RabbitMqDelivery): DrainedDeadLetter {
    const headers = delivery.raw.properties.headers ?? {}
    const decoded = decodeHeaders(headers)
    // Who gave it up says why. A replay that somebody else gave up carries our headers, without a reason.
    const foreign = decoded.reason === undefined ? readForeignDeath(headers) : undefined
    const origin = decoded.source ?? foreign?.origin ?? this.source
    const isTold = foreign === undefined || delivery.cycle.history.length > 0
    const cycle = isTold ? delivery.cycle : { ...foreign.cycle, number: delivery.cycle.number }
    const failureClass: FailureClass = cycle.history.at(-1)?.class ?? 'unknown'
    const { raw, ...rest } = delivery
    return {
      delivery: { ...rest, source: origin, cycle },
      origin,
      envelope: envelopeOf(raw),
      quarantined: this.#options.quarantineQueues.includes(queue),
      class: failureClass,
      reason: decoded.reason ?? foreign?.reason ?? 'unknown',
      naming: namingOf(raw),
      ...(decoded.stack === undefined ? {} : { stack: decoded.stack }),
    }
  }
}

const NO_CONFIRMATIONS: ConfirmationBatch = {
  confirmations: [],
  release: () => Promise.resolve(),
  abandon: () => Promise.resolve(),
}

/** What cannot be read is let go of at once: it will never say anything. */
const readIn = (holding: Holding): readonly ReplayConfirmation[] =>
  holding.taken.flatMap(({ delivery }) => {
    const confirmation = readConfirmation(delivery.bytes)
    if (confirmation !== undefined) return [confirmation]
    holding.release(delivery)
    return []
  })

function addressIn({ envelope, origin }: DrainedDeadLetter) {
  const { exchange = '', routingKey = origin } = envelope
  return { exchange, routingKey }
}

const lostBefore = (source: string, what: string, cause: unknown) =>
  new RedriveError(
    'DELIVERY_LOST',
    `${source}: the connection was lost before the broker had heard that the ${what} were released. Those it has not heard of are still in the queue and will be drained again.`,
    { cause },
  )

/** The control plane's side of a queue: its dead letters, or those of any queue you name. */
export function rabbitmqSource(options: RabbitMqSourceOptions): RabbitMqSource {
  return new RabbitMqSource(resolveSourceOptions(options))
}
