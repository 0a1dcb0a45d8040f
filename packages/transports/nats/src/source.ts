import {
  type ConfirmationBatch,
  type DeadLetterSource,
  type DrainedBatch,
  type DrainedDeadLetter,
  type DrainedQueue,
  parseConfirmation,
  type ReplayMessage,
} from '@redrive/runtime'
import type { ConsumerInfo, JetStreamManager } from '@nats-io/jetstream'
import type { Msg, NatsConnection } from '@nats-io/transport-node'
import { ManagedConnection } from './connection.ts'
import { type DeclaredSource, declareForSource, existing, managerOf } from './declare.ts'
import { placeIn, replayOf } from './delivery.ts'
import { type Batch, take } from './drain.ts'
import { isRemoval, removalFrom, removeOriginal } from './foreign.ts'
import { type NatsSourceOptions, resolveSourceOptions, type TopologyOptions } from './options.ts'
import { store } from './publish.ts'
import { returnedOf } from './put-back.ts'
import { readDeadLetter } from './read.ts'

interface Session {
  readonly connection: NatsConnection
  readonly manager: JetStreamManager
  /** Undefined: the streams of Redrive do not exist. */
  readonly declared: DeclaredSource | undefined
}

/** The control plane's access to a consumer: drains its dead letters, publishes replays and reads their confirmations. */
export class NatsSource implements DeadLetterSource {
  readonly source: string
  readonly replay = 'copy'
  readonly #options: TopologyOptions
  readonly #connection: ManagedConnection
  readonly #batches = new Set<Batch>()
  #session: Promise<Session> | undefined

  /** @internal */
  constructor(options: TopologyOptions) {
    this.source = options.topology.stream
    this.#options = options
    this.#connection = new ManagedConnection(options.connect)
  }

  async drain({ limit }: { readonly limit: number }): Promise<DrainedBatch> {
    const { deadConsumer } = this.#options.topology.dead
    const batch = await this.#take(deadConsumer, 'deadLetters', limit)
    if (batch === undefined) return { deadLetters: [], ...NOTHING }
    try {
      const { connection, manager, declared } = await this.#opened()
      const { topology, confirmTimeoutMs } = this.#options
      const { consumer } = topology
      const removal = declared === undefined ? 'keep' : removalFrom(declared.config)
      const isNoise = (message: Msg) =>
        topology.dead.advisories.includes(message.subject) && isRemoval(message, this.source)
      const noise = removal === 'keep' ? [] : batch.messages.filter(isNoise)
      const messages = batch.messages.filter((message) => !noise.includes(message))
      await batch.release(noise)
      const read = await Promise.all(
        messages.map((message) => {
          const { subject, data, headers } = message
          const placed = { subject, data, headers, place: placeIn(message) }
          return readDeadLetter(placed, topology, manager)
        }),
      )
      const foreign = { connection, manager, consumer, confirmTimeoutMs }
      const release = () =>
        this.#release(batch, messages, async () => {
          // First the original: without the advisory, it would stay in its stream unnoticed.
          const deaths = read.flatMap(({ death }) => death ?? [])
          await Promise.all(deaths.map((death) => removeOriginal(foreign, death, removal)))
        })
      const deadLetters = read.map(({ deadLetter }) => deadLetter)
      return { deadLetters, release, abandon: async () => this.#end(batch) }
    } catch (error) {
      this.#end(batch)
      throw error
    }
  }

  async confirmations({ limit }: { readonly limit: number }): Promise<ConfirmationBatch> {
    const { confirmationConsumer } = this.#options.topology.dead
    const batch = await this.#take(confirmationConsumer, 'confirmations', limit)
    if (batch === undefined) return { confirmations: [], ...NOTHING }
    const confirmations = batch.messages.flatMap(({ data }) => parseConfirmation(data) ?? [])
    // Also unreadable ones, because they stay unreadable.
    const release = () => this.#release(batch, batch.messages)
    return { confirmations, release, abandon: async () => this.#end(batch) }
  }

  async #take(
    consumer: string,
    kind: 'deadLetters' | 'confirmations',
    limit: number,
  ): Promise<Batch | undefined> {
    const { connection, declared } = await this.#opened()
    if (declared === undefined) return undefined
    const { topology, confirmTimeoutMs } = this.#options
    const { stream } = topology.dead
    const reading = { stream, consumer, ...declared[kind] }
    const batch = await take({ connection, limit, confirmTimeoutMs, ...reading })
    this.#batches.add(batch)
    return batch
  }

  /** Messages that are not released are available again, also for this control plane. */
  async #release(
    batch: Batch,
    messages: readonly Msg[],
    before?: () => Promise<void>,
  ): Promise<void> {
    try {
      await before?.()
      await batch.release(messages)
    } finally {
      this.#end(batch)
    }
  }

  #end(batch: Batch): void {
    this.#batches.delete(batch)
    batch.end()
  }

  async publish({ deadLetter, replayId }: ReplayMessage): Promise<void> {
    const { connection } = await this.#opened()
    const { retry } = this.#options.topology
    // A plain consumer reads only its stream.
    const { foreign, subject = retry.subject } = deadLetter.envelope
    const copy = replayOf(deadLetter, replayId)
    await store(
      connection,
      {
        ...copy,
        subject: foreign === undefined ? retry.subject : subject,
        messageId: `replay:${replayId}`,
      },
      this.#options.confirmTimeoutMs,
    )
  }

  /** Publishes dead letters to the stream with dead letters again. A later drain returns the same content. */
  async putBack(deadLetters: readonly DrainedDeadLetter[]): Promise<void> {
    const { connection } = await this.#opened()
    const { topology, confirmTimeoutMs } = this.#options
    await Promise.all(
      deadLetters.map((one) => store(connection, returnedOf(one, topology), confirmTimeoutMs)),
    )
  }

  async depth(): Promise<number> {
    const { stream, deadConsumer } = this.#options.topology.dead
    return (await this.#unfinished(stream, deadConsumer)) ?? 0
  }

  async queues(): Promise<readonly DrainedQueue[]> {
    const { stream, deadConsumer } = this.#options.topology.dead
    return [{ name: stream, depth: await this.#unfinished(stream, deadConsumer) }]
  }

  /** Returns the number of messages and due copies that consumers have not finished. */
  async lag(): Promise<number> {
    const { stream, consumer, retry } = this.#options.topology
    const counts = await Promise.all([
      this.#unfinished(stream, consumer),
      this.#unfinished(retry.stream, retry.consumer),
    ])
    return counts.reduce<number>((sum, count) => sum + (count ?? 0), 0)
  }

  async #unfinished(stream: string, consumer: string): Promise<number | undefined> {
    const { manager } = await this.#opened()
    const info = await existing(manager.consumers.info(stream, consumer))
    return info === undefined ? undefined : unfinishedIn(info)
  }

  async #opened(): Promise<Session> {
    this.#session ??= this.#open()
    try {
      const session = await this.#session
      // A consumer may create the streams later.
      if (session.declared === undefined) this.#session = undefined
      if (!session.connection.isClosed()) return session
      this.#session = this.#open()
      return await this.#session
    } catch (error) {
      this.#session = undefined
      throw error
    }
  }

  async #open(): Promise<Session> {
    const connection = await this.#connection.open()
    const manager = await managerOf(connection)
    return { connection, manager, declared: await declareForSource(connection, this.#options) }
  }

  async close(): Promise<void> {
    for (const batch of [...this.#batches]) this.#end(batch)
    await this.#connection.close()
  }
}

const NOTHING = { release: () => Promise.resolve(), abandon: () => Promise.resolve() }

const unfinishedIn = ({ num_pending, num_ack_pending }: ConsumerInfo) =>
  num_pending + num_ack_pending

/** Creates the control plane's access to the dead letters of a consumer, of Redrive or of another program. */
export function natsSource(options: NatsSourceOptions): NatsSource {
  return new NatsSource(resolveSourceOptions(options))
}
