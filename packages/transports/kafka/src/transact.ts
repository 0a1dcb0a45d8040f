import { randomUUID } from 'node:crypto'
import type { Consumer } from '@platformatic/kafka'
import { isError } from './client.ts'
import { commitOf } from './commit.ts'
import type { Consumption } from './consuming.ts'
import { decodeCommit } from './deaths.ts'
import type { HandOff } from './enact.ts'
import type { KafkaRecord } from './headers.ts'
import { nameOf } from './topic-partition.ts'
import type { Commit } from './offsets.ts'
import type { ResolvedOptions } from './options.ts'
import type { Partition } from './partition.ts'
import { closing, type KafkaProducer, messageOf, producerOf } from './publish.ts'

interface Pending {
  readonly partition: Partition
  readonly record: KafkaRecord
  readonly handOff: HandOff
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}

/** 200 hand-offs in one transaction: a short one, because readers wait for its end. */
const MOST = 200
/** 10 ms, 100 times: the broker still writes the end of the last one. */
const AGAIN_MS = 10
const AGAIN_TIMES = 100
/** 10 s: a transaction that nobody ended is aborted by the broker then. */
const TIMEOUT_MS = 10_000

/**
 * Hand-offs in which the copy and the commit of its original are one transaction. The commit carries
 * the bits of what is finished above the mark, so that this holds for handlers that finish in any order.
 */
export class Transactions {
  readonly #options: ResolvedOptions
  readonly #consumption: Consumption
  readonly #id: string
  readonly #pending: Pending[] = []
  #producer: KafkaProducer | undefined
  #isRunning = false
  #isClosed = false

  constructor(options: ResolvedOptions, consumption: Consumption) {
    const { topic, group } = options
    this.#options = options
    this.#consumption = consumption
    this.#id = `${topic}.${group}.${randomUUID()}`
  }

  /** Resolves when copy and commit are there, both. */
  send(partition: Partition, record: KafkaRecord, handOff: HandOff): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    this.#pending.push({ partition, record, handOff, resolve, reject })
    if (!this.#isRunning) {
      this.#isRunning = true
      setImmediate(() => void this.#runAll())
    }
    return promise
  }

  async #runAll(): Promise<void> {
    while (this.#pending.length > 0) {
      const batch = this.#pending.splice(0, MOST)
      await this.#consumption.committer.alone(() => this.#run(batch))
    }
    this.#isRunning = false
  }

  async #run(batch: readonly Pending[]): Promise<void> {
    const ours = batch.filter(
      ({ partition, record }) => !partition.isClosing && hasRoom(partition, record),
    )
    for (const one of batch) if (!ours.includes(one)) one.reject(new Error(NOT_NOW))
    if (ours.length === 0) return
    try {
      await this.#transact(ours)
      for (const { resolve } of ours) resolve()
    } catch (error) {
      await this.#judge(ours, error)
    }
  }

  async #transact(batch: readonly Pending[]): Promise<void> {
    const epoch = this.#consumption.epoch
    if (epoch === undefined) throw new Error('We are not in the group.')
    const commits = this.#commitsOf(batch)
    const producer = this.#current()
    const transaction = await begin(producer)
    const messages = batch.map(({ handOff }) => messageOf(handOff.to, handOff.copy).message)
    await patiently(() => transaction.send({ messages }))
    const groupId = this.#options.group
    // It reads nothing but the name of the group.
    await patiently(() => transaction.addConsumer({ groupId } as Consumer))
    const { producerId = 0n, producerEpoch = 0 } = producer
    const identity = { id: this.#id, producerId, producerEpoch }
    await this.#consumption.offsets.commitWith(identity, epoch, commits)
    await transaction.commit()
  }

  /**
   * Nobody knows how it ended. A new producer of the same name ends it at the broker; then the
   * committed offsets say whether it counts.
   */
  async #judge(batch: readonly Pending[], error: unknown): Promise<void> {
    const { offsets } = this.#consumption
    if (this.#producer !== undefined) await closing(this.#producer)
    this.#producer = undefined
    try {
      if (this.#isClosed) throw error
      const producer = this.#current()
      const transaction = await begin(producer)
      await transaction.cancel()
      const committed = await offsets.read(batch.map(({ partition }) => partition))
      for (const { partition, record, resolve, reject } of batch) {
        const { offset = 0, metadata = null } = committed.get(nameOf(partition)) ?? {}
        const { progress } = decodeCommit(offset, metadata)
        if (progress.has(record.offset)) resolve()
        else reject(error)
      }
    } catch {
      for (const { reject } of batch) reject(error)
    }
  }

  /** What is finished once these are, too. */
  #commitsOf(batch: readonly Pending[]): readonly Commit[] {
    return [...Map.groupBy(batch, ({ partition }) => partition)].map(([partition, ofIt]) => {
      const progress = partition.progress.copy()
      for (const { record } of ofIt) progress.finish(record.offset)
      return commitOf(partition, progress, this.#consumption.atRisk(partition))
    })
  }

  #current(): KafkaProducer {
    const { client } = this.#options
    // No repetition by the client library: a late answer could end the next transaction.
    this.#producer ??= producerOf(
      { ...client, timeout: TIMEOUT_MS },
      { transactionalId: this.#id, retries: 0 },
    )
    return this.#producer
  }

  async close(): Promise<void> {
    this.#isClosed = true
    for (const { reject } of this.#pending.splice(0)) reject(new Error('The transport is closed.'))
    if (this.#producer !== undefined) await closing(this.#producer)
  }
}

const NOT_NOW =
  'The partition is no longer ours, or there are too many unfinished records before this one for the commit to tell that it is finished.'

/** Whether the commit can say that it is finished; what it cannot say would be run again beside the copy. */
function hasRoom({ progress }: Partition, { offset }: KafkaRecord): boolean {
  const copy = progress.copy()
  copy.finish(offset)
  return offset < copy.mark || offset < copy.encode().upTo
}

/** The client library takes one that could not begin for one that is under way. */
const begin = (producer: KafkaProducer) =>
  patiently(async () => {
    await producer.transaction?.cancel()
    return producer.beginTransaction()
  })

/** Refused because the last one is not over at the broker, or it has no coordinator yet: nothing has happened. */
const NOT_YET = [
  'CONCURRENT_TRANSACTIONS',
  'COORDINATOR_LOAD_IN_PROGRESS',
  'COORDINATOR_NOT_AVAILABLE',
  'NOT_COORDINATOR',
]

/** Asks again what was refused for now. */
async function patiently<T>(ask: () => Promise<T>): Promise<T> {
  for (let times = 1; ; times++) {
    try {
      return await ask()
    } catch (error) {
      if (times >= AGAIN_TIMES || !isError(error, ...NOT_YET)) throw error
      await new Promise((resolve) => setTimeout(resolve, AGAIN_MS))
    }
  }
}
