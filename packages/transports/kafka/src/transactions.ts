import { randomUUID } from 'node:crypto'
import type { Consumer } from '@platformatic/kafka'
import { isError } from './protocol/client.ts'
import { commitOf } from './consume/committer.ts'
import type { Consumption } from './consume/consumption.ts'
import { decodeCommit } from './consume/crash-evidence.ts'
import type { HandOff } from './enact.ts'
import type { KafkaRecord } from './delivery.ts'
import { hasRefusal } from './protocol/refusal.ts'
import { nameOf } from './protocol/topic-partition.ts'
import type { Commit } from './protocol/offsets.ts'
import type { ResolvedOptions } from './options.ts'
import type { Partition } from './consume/partition.ts'
import { closing, forgetIfOutdated, type KafkaProducer, producerOf } from './producer.ts'
import { messageOf } from './publish.ts'

interface PendingHandOff {
  readonly partition: Partition
  readonly record: KafkaRecord
  readonly handOff: HandOff
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}

/** 200 hand-offs per transaction. It stays short, because readers wait for its end. */
const MAX_HAND_OFFS = 200
/** 100 retries, 10 ms apart: the broker may still be writing the end of the last transaction. */
const RETRY_MS = 10
const RETRY_TIMES = 100
/** 10 s: after this time, the broker aborts a transaction that was not ended. */
const TIMEOUT_MS = 10_000

/**
 * Runs hand-offs in which the copy and the commit of its original are one transaction. The commit contains the
 * bitmap of finished records above the mark, so this also works when handlers finish in any order.
 */
export class Transactions {
  readonly #options: ResolvedOptions
  readonly #consumption: Consumption
  readonly #id: string
  readonly #pending: PendingHandOff[] = []
  #producer: KafkaProducer | undefined
  #isRunning = false
  #isClosed = false

  constructor(options: ResolvedOptions, consumption: Consumption) {
    const { topic, group } = options
    this.#options = options
    this.#consumption = consumption
    this.#id = `${topic}.${group}.${randomUUID()}`
  }

  /** Resolves when both the copy and the commit are stored. */
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
      const batch = this.#pending.splice(0, MAX_HAND_OFFS)
      await this.#consumption.committer.alone(() => this.#run(batch))
    }
    this.#isRunning = false
  }

  async #run(batch: readonly PendingHandOff[]): Promise<void> {
    const ours = batch.filter(
      ({ partition, record }) => !partition.isClosing && fitsIntoCommit(partition, record),
    )
    for (const one of batch) if (!ours.includes(one)) one.reject(new Error(NOT_POSSIBLE))
    if (ours.length === 0) return
    try {
      await this.#transact(ours)
      for (const one of ours) finish(one)
    } catch (error) {
      // The broker rejects one of them: each gets its own transaction, so that it does not block the others.
      const canSplit = ours.length > 1 && !this.#isClosed && hasRefusal(error)
      if (!canSplit) return this.#resolveOutcome(ours, error)
      await this.#retire()
      for (const one of ours) await this.#run([one])
    }
  }

  async #transact(batch: readonly PendingHandOff[]): Promise<void> {
    const epoch = this.#consumption.epoch
    if (epoch === undefined) throw new Error('This consumer is not a member of the group.')
    const commits = this.#commitsOf(batch)
    const producer = this.#current()
    const transaction = await begin(producer)
    const messages = batch.map(({ handOff }) => messageOf(handOff.to, handOff.copy).message)
    forgetIfOutdated(producer, messages)
    await withRetries(() => transaction.send({ messages }))
    const groupId = this.#options.group
    // The method reads only the name of the group.
    await withRetries(() => transaction.addConsumer({ groupId } as Consumer))
    const { producerId = 0n, producerEpoch = 0 } = producer
    const identity = { id: this.#id, producerId, producerEpoch }
    await this.#consumption.offsets.commitWith(identity, epoch, commits)
    await transaction.commit()
  }

  /**
   * Finds the outcome of a transaction after an error. A new producer with the same transactional id ends it at
   * the broker. Then the committed offsets show whether it was committed.
   */
  async #resolveOutcome(batch: readonly PendingHandOff[], error: unknown): Promise<void> {
    const { offsets } = this.#consumption
    await this.#retire()
    try {
      if (this.#isClosed) throw error
      const producer = this.#current()
      const transaction = await begin(producer)
      await transaction.cancel()
      const committed = await offsets.read(batch.map(({ partition }) => partition))
      for (const one of batch) {
        const { offset = 0, metadata = null } = committed.get(nameOf(one.partition)) ?? {}
        const { progress } = decodeCommit(offset, metadata)
        if (progress.has(one.record.offset)) finish(one)
        else one.reject(error)
      }
    } catch {
      for (const { reject } of batch) reject(error)
    }
  }

  /** Returns the commits for the state after these hand-offs. */
  #commitsOf(batch: readonly PendingHandOff[]): readonly Commit[] {
    return [...Map.groupBy(batch, ({ partition }) => partition)].map(([partition, handOffs]) => {
      const progress = partition.progress.copy()
      for (const { record } of handOffs) progress.finish(record.offset)
      return commitOf(partition, progress, this.#consumption.atRisk(partition))
    })
  }

  #current(): KafkaProducer {
    const { client } = this.#options
    // No retries by the client library: a late answer could end the next transaction.
    this.#producer ??= producerOf(
      { ...client, timeout: TIMEOUT_MS },
      { transactionalId: this.#id, retries: 0 },
    )
    return this.#producer
  }

  /** Closes the producer. The next one has the same transactional id, so it ends an open transaction at the broker. */
  async #retire(): Promise<void> {
    const producer = this.#producer
    this.#producer = undefined
    if (producer !== undefined) await closing(producer)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    for (const { reject } of this.#pending.splice(0))
      reject(new Error('The transport was closed before the hand-off.'))
    await this.#retire()
  }
}

/**
 * Marks the record as finished before the next commit begins. The caller of `send` does so too, but only
 * after that: its commit would revert the one of the transaction.
 */
function finish({ partition, record, resolve }: PendingHandOff): void {
  partition.progress.finish(record.offset)
  resolve()
}

const NOT_POSSIBLE =
  'The partition is being revoked, or the commit has no room for this record because too many records before it are unfinished.'

/** Returns whether the commit has room to mark the record as finished. Without the mark, the record would run again in addition to its copy. */
function fitsIntoCommit({ progress }: Partition, { offset }: KafkaRecord): boolean {
  const copy = progress.copy()
  copy.finish(offset)
  return offset < copy.mark || offset < copy.encode().upTo
}

/** Begins a transaction. Cancels the last one first: the client library treats a transaction that failed to begin as open. */
const begin = (producer: KafkaProducer) =>
  withRetries(async () => {
    await producer.transaction?.cancel()
    return producer.beginTransaction()
  })

/** Errors without any effect: the last transaction has not ended at the broker, or the coordinator is not available. */
const RETRYABLE = [
  'CONCURRENT_TRANSACTIONS',
  'COORDINATOR_LOAD_IN_PROGRESS',
  'COORDINATOR_NOT_AVAILABLE',
  'NOT_COORDINATOR',
]

/** Repeats a request that was rejected with a retryable error. */
async function withRetries<T>(request: () => Promise<T>): Promise<T> {
  for (let times = 1; ; times++) {
    try {
      return await request()
    } catch (error) {
      if (times >= RETRY_TIMES || !isError(error, ...RETRYABLE)) throw error
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
    }
  }
}
