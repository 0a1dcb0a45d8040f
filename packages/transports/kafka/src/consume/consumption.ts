import type { BaseOptions } from '@platformatic/kafka'
import type { Receiver } from '@redrive/runtime'
import { withTimeout } from '@redrive/runtime/internal'
import type { KafkaDelivery } from '../delivery.ts'
import { Client } from '../protocol/client.ts'
import type { OnMissing, OnResult } from '../protocol/fetcher.ts'
import { type Epoch, Membership } from '../protocol/membership.ts'
import { Offsets } from '../protocol/offsets.ts'
import { storeTimeRecord } from '../protocol/time-record.ts'
import type { TopicPartition } from '../protocol/topic-partition.ts'
import { Assignment, type Subscription } from './assignment.ts'
import { BrokerClock } from './broker-clock.ts'
import { Committer } from './committer.ts'
import type { AtRisk } from './crash-evidence.ts'
import { Dispatcher } from './dispatcher.ts'
import type { Partition } from './partition.ts'
import { ReadAhead } from './read-ahead.ts'

export interface ConsumptionOptions {
  readonly client: BaseOptions
  readonly group: string
  readonly topics: readonly Subscription[]
  /** The source name that users see. */
  readonly source: string
  readonly sessionMs: number
  readonly drainMs: number
  readonly onResult: OnResult
  readonly onMissing: OnMissing
  /** Called after each rebalance, with the number of partitions of the source that this member has. */
  readonly onAssigned: (assigned: number) => void
  /** Whether `prepare` must run before the partition is read. */
  readonly needsPreparation: (topicPartition: TopicPartition) => boolean
  /** Prepares the topics for these partitions. When it rejects, it is called again. */
  readonly prepare: (topicPartitions: readonly TopicPartition[]) => Promise<void>
  readonly onExpired: (topicPartition: TopicPartition, count: number) => void
  readonly onRecreated: (topicPartition: TopicPartition) => void
}

/** 2 s for each step of closing: a broker that does not answer must not block it. */
const CLOSE_MS = 2_000

/**
 * Consumes topics in a group. It reads ahead of the handlers and delivers records up to the limit. A commit
 * contains the first unfinished offset and a bitmap of the finished records above it.
 */
export class Consumption {
  /** A connection only for offsets and commits: a fetch on the same connection would delay them. */
  readonly #client: Client
  readonly offsets: Offsets
  readonly committer: Committer
  readonly #assignment: Assignment
  readonly #readAhead: ReadAhead
  readonly #dispatcher: Dispatcher
  readonly #membership: Membership
  readonly #firstJoin = Promise.withResolvers<void>()
  /** The epoch that the broker reported as ended. Records read ahead now belong to another member. */
  #fencedIn: Epoch | undefined

  constructor(options: ConsumptionOptions) {
    const { client, group, topics, onResult, onMissing } = options
    this.#client = new Client(client)
    this.offsets = new Offsets(this.#client, group)
    this.committer = this.#makeCommitter(onResult)
    this.#assignment = this.#makeAssignment(options)
    const assignment = this.#assignment
    this.#readAhead = new ReadAhead({ client, topics, assignment, onResult, onMissing })
    this.#dispatcher = this.#makeDispatcher(options.source)
    this.#membership = this.#makeMembership(options)
  }

  /** Number of records of the source that are not committed; undefined before all assigned partitions are read. */
  get lag(): number | undefined {
    let sum = 0
    for (const { tierMs, lag } of this.#assignment.partitions) {
      if (tierMs > 0) continue
      if (lag === undefined) return undefined
      sum += lag
    }
    return sum
  }

  #makeCommitter(onResult: OnResult): Committer {
    return new Committer({
      offsets: this.offsets,
      epoch: () => this.epoch,
      partitions: () => this.#assignment.partitions,
      isOurs: (topicPartition) => this.#membership.owns(topicPartition),
      atRisk: (partition) => this.atRisk(partition),
      onFenced: () => {
        this.#fencedIn = this.epoch
      },
      onResult,
    })
  }

  #makeAssignment(options: ConsumptionOptions): Assignment {
    const { topics, drainMs, needsPreparation, prepare, onExpired, onRecreated, onResult } = options
    return new Assignment({
      client: this.#client,
      offsets: this.offsets,
      committer: this.committer,
      topics,
      drainMs,
      isOurs: (topicPartition) => this.#membership.owns(topicPartition),
      isFenced: () => this.#isFenced,
      onStarted: () => this.#readAhead.wake(),
      onTaken: (partition) => {
        this.committer.changed()
        this.#dispatcher.ready(partition)
      },
      onForgotten: (partitions) => this.#dispatcher.forget(partitions),
      needsPreparation,
      prepare,
      onExpired,
      onRecreated,
      onResult,
    })
  }

  #makeDispatcher(source: string): Dispatcher {
    return new Dispatcher({
      source,
      clock: new BrokerClock((to) => storeTimeRecord(this.#client, to)),
      isHeldBack: () => this.#isFenced,
      onRoom: (partition) => this.#readAhead.resume(partition),
      onLeft: () => {
        this.committer.changed()
        this.#assignment.deliveryEnded()
      },
    })
  }

  #makeMembership(options: ConsumptionOptions): Membership {
    const { client, group, topics, sessionMs, drainMs, onResult } = options
    return new Membership({
      client,
      group,
      topics: topics.map(({ name }) => name),
      sessionMs,
      drainMs,
      onJoined: () => {
        this.#firstJoin.resolve()
        this.#dispatcher.pump()
        options.onAssigned(this.#membership.ownedOf(options.source))
      },
      onAssigned: (topicPartitions) => void this.#assignment.start(topicPartitions),
      onRevoked: (topicPartitions) => this.#assignment.handOver(topicPartitions),
      onLost: (topicPartitions) => this.#assignment.lose(topicPartitions),
      onResult,
    })
  }

  get epoch(): Epoch | undefined {
    return this.#membership.epoch
  }

  get #isFenced(): boolean {
    return this.#fencedIn !== undefined && this.#fencedIn === this.epoch
  }

  /** Whether this member is in the group and has delivered every record read so far. */
  get isAtEnd(): boolean {
    return this.epoch !== undefined && this.#assignment.isAtEnd
  }

  start(receiver: Receiver<KafkaDelivery>): void {
    this.#dispatcher.start(receiver)
    this.#membership.join()
  }

  /** Resolves when the group is joined for the first time, or when this is closed. */
  get joined(): Promise<void> {
    return this.#firstJoin.promise
  }

  limit(count: number): void {
    this.#dispatcher.limit = count
    this.#dispatcher.pump()
  }

  /** Pauses. Resolves when the records at risk are committed, because one of them may run alone next. */
  async pause(): Promise<void> {
    this.#dispatcher.isPaused = true
    if (this.#dispatcher.hasSuspects) await this.#commitAtRisk()
  }

  resume(): void {
    this.#dispatcher.isPaused = false
    if (this.#dispatcher.hasSuspects) void this.#commitAtRisk()
    this.#dispatcher.pump()
  }

  #commitAtRisk(): Promise<void> {
    for (const partition of this.#assignment.partitions) partition.touch()
    return this.committer.flushAll()
  }

  atRisk(partition: Partition): AtRisk {
    if (partition.isClosing) return 'none'
    const { isPaused, limit } = this.#dispatcher
    return isPaused ? { exactly: this.#dispatcher.inFlightOf(partition) } : { amongFirst: limit }
  }

  /** Returns the partition of a delivery in flight, or undefined when it is no longer assigned. */
  partitionOf(delivery: KafkaDelivery): Partition | undefined {
    return this.#dispatcher.partitionOf(delivery)
  }

  /** Finishes a delivery. Returns false when its partition is no longer assigned. */
  finish(delivery: KafkaDelivery): boolean {
    return this.#dispatcher.finish(delivery)
  }

  /** Returns a delivery to its partition, which delivers it again. */
  returnToPartition(delivery: KafkaDelivery): boolean {
    return this.#dispatcher.returnToPartition(delivery)
  }

  /** Resolves when all finished records are committed, or when the commit failed. */
  committed(): Promise<void> {
    return this.committer.flushAll()
  }

  async close(): Promise<void> {
    if (this.#assignment.isClosed) return
    this.#firstJoin.resolve()
    this.#dispatcher.isPaused = true
    // Errors are ignored, here and below: another consumer consumes uncommitted records again.
    const committing = this.#assignment.commitLast(performance.now() + CLOSE_MS)
    await withTimeout(Promise.allSettled([committing]), CLOSE_MS, () => undefined)
    this.#assignment.close()
    this.#dispatcher.close()
    this.#readAhead.stop()
    this.committer.stop()
    // An unreachable broker removes this member when the session times out.
    await withTimeout(Promise.allSettled([this.#membership.leave()]), CLOSE_MS, () => undefined)
    const closing = [this.#client.close(), this.#readAhead.close()]
    await withTimeout(Promise.allSettled(closing), CLOSE_MS, () => undefined)
  }
}
