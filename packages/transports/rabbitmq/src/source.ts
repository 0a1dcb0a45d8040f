import {
  type DecodedHeaders,
  decodeHeaders,
  type FailureClass,
  isRedriveError,
  RedriveError,
} from '@redrive/core'
import {
  type ConfirmationBatch,
  type DeadLetterSource,
  type DrainedBatch,
  type DrainedDeadLetter,
  type DrainedQueue,
  type ReplayConfirmation,
  type ReplayMessage,
  parseConfirmation,
} from '@redrive/runtime'
import type { Channel, ChannelModel } from 'amqplib'
import { MissingQueueBackoff } from './missing-queue-backoff.ts'
import { messageCount } from './declare.ts'
import {
  type ForeignDeath,
  readBrokerDeath,
  readForeignDeath,
  withForeignDeath,
} from './foreign.ts'
import {
  type Address,
  copiedAddressOf,
  envelopeOf,
  identityOf,
  producerAddressOf,
  type RabbitMqDelivery,
  replayOf,
  toDelivery,
} from './delivery.ts'
import { unwrapEasyNetQ } from './easynetq.ts'
import { readWireHeaders } from './connection/wire-headers.ts'
import { type DrainChannel, hold, type OnLost } from './drain.ts'
import { ManagedConnection } from './connection/connection.ts'
import { frameMaxOf } from './connection/socket.ts'
import {
  type RabbitMqSourceOptions,
  type ResolvedSourceOptions,
  resolveSourceOptions,
} from './options.ts'
import { checkPublishable } from './message/check-encodable.ts'
import { COPY, Publisher } from './publish.ts'
import { putBack, putBackEnvelopeOf } from './put-back.ts'
import { textOf, unreadableDeadLetter } from './unreadable.ts'

/** 2 s without the next dead letter: another control plane has taken the rest. */
const QUIET_MS = 2_000
/** 100 ms without the next confirmation: they are read several times per second. */
const CONFIRMATION_QUIET_MS = 100

/** The control plane's access to a queue: drains dead letters, publishes replays and reads their confirmations. */
export class RabbitMqSource implements DeadLetterSource {
  readonly source: string
  readonly replay = 'copy'
  readonly #options: ResolvedSourceOptions
  readonly #connection: ManagedConnection<Channel>
  readonly #publisher: Publisher
  /** Dead letters that are drained but not released yet. */
  readonly #drained = new Set<DrainChannel>()
  readonly #missingQueueBackoff = new MissingQueueBackoff()

  /** @internal */
  constructor(options: ResolvedSourceOptions) {
    const { urls, connect, confirmTimeoutMs } = options
    this.source = options.queue
    this.#options = options
    this.#connection = new ManagedConnection<Channel>({
      urls,
      connect: async (url) => readWireHeaders(await connect(url, 'drain')),
      prepare: (connection) => connection.createChannel(),
      onLost: () => this.#drained.clear(),
    })
    this.#publisher = new Publisher({ urls, connect, confirmTimeoutMs, onBlocked: () => undefined })
  }

  async drain({ limit }: { readonly limit: number }): Promise<DrainedBatch> {
    const queues = this.#options.deadLetterQueues
    const drainChannel = await this.#withConnection((connection) =>
      hold(connection, { queues, limit, quietMs: QUIET_MS }),
    )
    this.#drained.add(drainChannel)
    return {
      deadLetters: drainChannel.taken.map(({ queue, delivery }) => this.#read(queue, delivery)),
      ...this.#endActions(drainChannel, 'dead letters'),
    }
  }

  #endActions(drainChannel: DrainChannel, what: string): Pick<DrainedBatch, 'release' | 'abandon'> {
    const forgetAfter = (ended: Promise<void>) =>
      ended.finally(() => this.#drained.delete(drainChannel))
    const onLost: OnLost = (cause) => lostBeforeRelease(this.source, what, cause)
    return {
      release: () => forgetAfter(drainChannel.releaseAll(onLost)),
      abandon: () => forgetAfter(drainChannel.abandonAll(onLost)),
    }
  }

  async confirmations({ limit }: { readonly limit: number }): Promise<ConfirmationBatch> {
    const queue = this.#options.confirmationQueue
    const now = performance.now()
    if (!this.#missingQueueBackoff.isDue(now)) return NO_CONFIRMATIONS
    const waiting = await this.#withConnection((connection) => messageCount(connection, queue))
    this.#missingQueueBackoff.note(waiting !== undefined, now)
    if (waiting === undefined || waiting === 0) return NO_CONFIRMATIONS
    const quietMs = CONFIRMATION_QUIET_MS
    const drainChannel = await this.#withConnection((connection) =>
      hold(connection, { queues: [queue], limit, quietMs }),
    )
    const confirmations = readConfirmations(drainChannel)
    const batch = { confirmations, ...this.#endActions(drainChannel, 'confirmations') }
    if (confirmations.length > 0) return batch
    await batch.release()
    return NO_CONFIRMATIONS
  }

  async publish({ deadLetter, replayId }: ReplayMessage): Promise<void> {
    await this.#publisher.open()
    const { copies, ...to }: Address =
      this.#options.replayTo === 'exchange'
        ? producerAddressOf(deadLetter)
        : { exchange: '', routingKey: deadLetter.origin }
    const copy = replayOf(deadLetter, replayId, copies)
    await this.#publisher.inTime(this.#publisher.send({ ...to, ...copy }))
    this.#missingQueueBackoff.expect()
  }

  /** Publishes dead letters to the queues they were drained from, with the same bytes, headers and properties. */
  putBack(deadLetters: readonly DrainedDeadLetter[]): Promise<void> {
    const { confirmTimeoutMs } = this.#options
    return this.#withConnection((connection) => putBack(connection, deadLetters, confirmTimeoutMs))
  }

  async depth(): Promise<number> {
    let total = 0
    for (const { unackedCount } of this.#drained) total += unackedCount
    for (const queue of this.#options.deadLetterQueues) {
      total += (await this.#withConnection((connection) => messageCount(connection, queue))) ?? 0
    }
    return total
  }

  /** Returns the dead-letter queues. Consumers create a quarantine queue when they first need it. */
  async queues(): Promise<readonly DrainedQueue[]> {
    const { deadLetterQueues, quarantineQueues } = this.#options
    const found: DrainedQueue[] = []
    for (const name of deadLetterQueues) {
      const depth = await this.#withConnection((connection) => messageCount(connection, name))
      if (depth !== undefined || !quarantineQueues.includes(name)) found.push({ name, depth })
    }
    return found
  }

  /** Returns the number of ready messages in the source queue: the lag of its consumers. */
  async lag(): Promise<number> {
    return (await this.#withConnection((connection) => messageCount(connection, this.source))) ?? 0
  }

  async close(): Promise<void> {
    await Promise.all([this.#connection.close(), this.#publisher.close()])
  }

  /**
   * Runs `work` with a connection. Connects on first use, and waits for a lost connection to be restored. A
   * hung connection is replaced, so the next call uses another node.
   */
  async #withConnection<T>(work: (connection: ChannelModel) => Promise<T>): Promise<T> {
    await this.#connection.open()
    const { connection, channel } = await this.#connection.whenReady(this.#options.confirmTimeoutMs)
    try {
      return await work(connection)
    } catch (error) {
      if (isRedriveError(error, 'UNREACHABLE')) this.#connection.reset(channel, error)
      throw error
    }
  }

  /** Reads a dead letter. Whatever its headers contain, it does not throw: the other dead letters would wait. */
  #read(queue: string, delivery: RabbitMqDelivery): DrainedDeadLetter {
    try {
      const frameMax = frameMaxOf(this.#connection.connection)
      return withReplayProblem(this.#deadLetterOf(queue, delivery), frameMax)
    } catch (error) {
      const quarantined = this.#options.quarantineQueues.includes(queue)
      const unreadable = unreadableDeadLetter(this.source, delivery, error)
      const { headers } = unreadable.delivery
      const putBackTo = putBackEnvelopeOf(queue, { raw: delivery.raw, headers })
      return { ...unreadable, envelope: { ...unreadable.envelope, ...putBackTo }, quarantined }
    }
  }

  #deadLetterOf(queue: string, outer: RabbitMqDelivery): DrainedDeadLetter {
    const wrapped = unwrapEasyNetQ(outer.raw)
    const delivery = wrapped === undefined ? outer : toDelivery(this.source, wrapped.message)
    const { raw, headerTypes: _, ...rest } = delivery
    const headers = raw.properties.headers ?? {}
    const decoded = decodeHeaders(headers)
    const foreign = wrapped?.death ?? this.#foreignDeath(headers, decoded)
    const origin = decoded.source ?? foreign?.origin ?? this.source
    // Not the address in `raw`: that is the address of the dead-letter queue.
    const direct = { exchange: '', routingKey: origin }
    const address = copiedAddressOf(raw) ?? foreign?.address ?? direct
    const cycle = foreign === undefined ? delivery.cycle : withForeignDeath(delivery.cycle, foreign)
    const failureClass: FailureClass = cycle.history.at(-1)?.class ?? 'unknown'
    return {
      delivery: { ...rest, source: origin, cycle },
      origin,
      envelope: { ...envelopeOf(delivery, address), ...putBackEnvelopeOf(queue, outer, wrapped) },
      quarantined: this.#options.quarantineQueues.includes(queue),
      class: failureClass,
      reason: foreign?.reason ?? decoded.reason ?? 'unknown',
      identity: identityOf(raw),
      ...(decoded.handler === undefined ? {} : { handler: decoded.handler }),
      ...(decoded.stack === undefined ? {} : { stack: decoded.stack }),
    }
  }

  /** Returns the failure that others than Redrive describe; undefined for a dead letter of Redrive. */
  #foreignDeath(
    headers: Readonly<Record<string, unknown>>,
    { reason, source }: DecodedHeaders,
  ): ForeignDeath | undefined {
    const queues = { source: this.source, deadLetters: this.#options.deadLetterQueues }
    // Another library dead-lettered a replay: our headers have no reason.
    if (reason === undefined) return readForeignDeath(headers, queues)
    // A retry has a reason, too. If the broker dead-lettered it from the queue, another consumer rejected it.
    const broker = readBrokerDeath(headers, queues)
    return broker?.origin === (source ?? this.source) ? broker : undefined
  }
}

/** A replay id of the catalog, with its key and signature. Keys have at most ten digits. */
const SOME_REPLAY_ID = `00000000-0000-8000-8000-000000000000.${'0'.repeat(10)}.${'A'.repeat(22)}`

/** Adds a problem to a dead letter whose replay could not be published because of its headers. */
function withReplayProblem(deadLetter: DrainedDeadLetter, frameMax: number): DrainedDeadLetter {
  const { properties } = replayOf(deadLetter, SOME_REPLAY_ID)
  try {
    const headers = { ...(properties.headers as object), [COPY]: '1'.repeat(16) }
    checkPublishable({ ...properties, headers }, frameMax)
    return deadLetter
  } catch (error) {
    const message = `A replay cannot be published with these headers: ${textOf(error)}`
    return { ...deadLetter, problem: { code: 'headers_not_publishable', message } }
  }
}

const NO_CONFIRMATIONS: ConfirmationBatch = {
  confirmations: [],
  release: () => Promise.resolve(),
  abandon: () => Promise.resolve(),
}

/** Parses the confirmations. Releases unreadable messages immediately, because they stay unreadable. */
const readConfirmations = (drainChannel: DrainChannel): readonly ReplayConfirmation[] =>
  drainChannel.taken.flatMap(({ delivery }) => {
    const confirmation = parseConfirmation(delivery.bytes)
    if (confirmation !== undefined) return [confirmation]
    drainChannel.release(delivery)
    return []
  })

const lostBeforeRelease = (source: string, what: string, cause: unknown) =>
  new RedriveError(
    'DELIVERY_LOST',
    `${source}: the connection was lost before the broker confirmed the release of the ${what}. Redrive reads the remaining ones again.`,
    { cause },
  )

/** Creates the control plane's access to the dead letters of a queue, or of the dead-letter queues you list. */
export function rabbitmqSource(options: RabbitMqSourceOptions): RabbitMqSource {
  return new RabbitMqSource(resolveSourceOptions(options))
}
