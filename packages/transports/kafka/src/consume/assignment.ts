import type { Client } from '../protocol/client.ts'
import type { OnResult } from '../protocol/fetcher.ts'
import type { Offsets } from '../protocol/offsets.ts'
import { nameOf, type TopicPartition } from '../protocol/topic-partition.ts'
import type { Committer } from './committer.ts'
import { decodeCommit } from './crash-evidence.ts'
import { Partition } from './partition.ts'
import { type StartPosition, StartPositions } from './start-positions.ts'

/** A topic that is consumed. */
export interface Subscription {
  readonly name: string
  /** Delay of its records in milliseconds; 0 means that they are delivered immediately. */
  readonly tierMs: number
  readonly isOrdered: boolean
  /** Start position of a group without commits. */
  readonly from: 'earliest' | 'latest'
}

export interface AssignmentDeps {
  readonly client: Client
  readonly offsets: Offsets
  readonly committer: Committer
  readonly topics: readonly Subscription[]
  /** Maximum wait for the handlers before a partition is handed over. */
  readonly drainMs: number
  readonly isOurs: (topicPartition: TopicPartition) => boolean
  /** Whether the broker has rejected a commit of this epoch. */
  readonly isFenced: () => boolean
  /** Whether `prepare` must run before the partition is read. */
  readonly needsPreparation: (topicPartition: TopicPartition) => boolean
  /** Prepares the topics for these partitions. When it rejects, it is called again. */
  readonly prepare: (topicPartitions: readonly TopicPartition[]) => Promise<void>
  /** Called when new partitions can be read. */
  readonly onStarted: () => void
  /** Called when an assigned partition has taken fetched records. */
  readonly onTaken: (partition: Partition) => void
  /** Called with partitions that are no longer assigned. */
  readonly onForgotten: (partitions: readonly Partition[]) => void
  readonly onExpired: (topicPartition: TopicPartition, count: number) => void
  /** Called when a topic was deleted and created again, and is read from its first record. */
  readonly onRecreated: (topicPartition: TopicPartition) => void
  readonly onResult: OnResult
}

const COORDINATOR = 'the coordinator, for offsets'
/** 200 ms between two attempts to read a start offset or to commit. Starts double it up to 2 s. */
const RETRY_MS = 200
const RETRY_CAP_MS = 2_000

/**
 * The partitions that the group has assigned to this member. It starts them at their committed offsets, and
 * commits their finished records before it releases them.
 */
export class Assignment {
  readonly #deps: AssignmentDeps
  readonly #topics: ReadonlyMap<string, Subscription>
  readonly #positions: StartPositions
  readonly #partitions = new Map<string, Partition>()
  /** Partitions that start at an offset of another client, and may belong to an earlier topic of the same name. */
  readonly #untrusted = new WeakSet<Partition>()
  /** Assigned partitions whose start offset is being read. */
  readonly #starting = new Set<TopicPartition>()
  /** Assigned partitions that cannot start because their topic does not exist. */
  readonly #missing = new WeakSet<TopicPartition>()
  /** Wakes the hand-over that waits for the handlers. */
  #onDeliveryEnded: (() => void) | undefined
  #isClosed = false

  constructor(deps: AssignmentDeps) {
    this.#deps = deps
    this.#topics = new Map(deps.topics.map((topic) => [topic.name, topic]))
    const { client, offsets } = deps
    const from = (topic: string) => this.#topics.get(topic)?.from ?? 'earliest'
    this.#positions = new StartPositions({ client, offsets, from })
  }

  /** The partitions that have started. */
  get partitions(): Iterable<Partition> {
    return this.#partitions.values()
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  /** Number of records that wait behind an unfinished record of their key. */
  get parked(): number {
    let parked = 0
    for (const partition of this.partitions) parked += partition.parked
    return parked
  }

  /** Whether every assigned partition that exists has started and delivered every record read so far. */
  get isAtEnd(): boolean {
    for (const one of this.#starting) if (!this.#missing.has(one)) return false
    for (const partition of this.partitions) if (!partition.isAtEnd) return false
    return true
  }

  // ---- starting -------------------------------------------------------------------------------

  /** Starts partitions. Partitions that need preparation start separately, so that the others do not wait for them. */
  async start(topicPartitions: readonly TopicPartition[]): Promise<void> {
    const { needsPreparation } = this.#deps
    for (const topicPartition of topicPartitions) this.#starting.add(topicPartition)
    const ready = topicPartitions.filter((one) => !needsPreparation(one))
    const unprepared = topicPartitions.filter(needsPreparation)
    await Promise.all([this.#startAll(ready), this.#startAll(unprepared)])
  }

  async #startAll(topicPartitions: readonly TopicPartition[]): Promise<void> {
    let left = topicPartitions
    for (let tries = 0; (left = left.filter(this.#isStillStarting)).length > 0; tries++) {
      try {
        await this.#startNow(left)
        this.#deps.onResult(COORDINATOR, undefined)
        this.#deps.onStarted()
      } catch (error) {
        this.#deps.onResult(COORDINATOR, error)
      }
      if (left.some(this.#isStillStarting))
        await pause(Math.min(RETRY_CAP_MS, RETRY_MS * 2 ** tries))
    }
    for (const topicPartition of topicPartitions) this.#starting.delete(topicPartition)
  }

  /** A partition that is being revoked is still assigned until the hand-over, but is not started. */
  readonly #isStillStarting = (topicPartition: TopicPartition) =>
    this.#starting.has(topicPartition) && !this.#isClosed

  /** Starts the partitions whose topic exists. The others start when their topic exists again. */
  async #startNow(topicPartitions: readonly TopicPartition[]): Promise<void> {
    if (topicPartitions.some(this.#deps.needsPreparation)) await this.#deps.prepare(topicPartitions)
    const positions = await this.#positions.find(topicPartitions)
    for (const topicPartition of topicPartitions) {
      if (positions.has(topicPartition)) this.#missing.delete(topicPartition)
      else this.#missing.add(topicPartition)
    }
    const started = [...positions].map(([topicPartition, start]) =>
      this.#makePartition(topicPartition, start),
    )
    // Committed before the first delivery: the first record may crash the process.
    await this.#deps.committer.flush(started)
    for (const partition of started) {
      if (!this.#isStillStarting(partition.topicPartition)) continue
      this.#partitions.set(nameOf(partition), partition)
      this.#starting.delete(partition.topicPartition)
    }
  }

  #makePartition(
    topicPartition: TopicPartition,
    { mark, metadata, topic, origin }: StartPosition,
  ): Partition {
    const { tierMs = 0, isOrdered = false } = this.#topics.get(topicPartition.topic) ?? {}
    if (origin === 'recreated') this.#deps.onRecreated(topicPartition)
    const made = new Partition({
      topicPartition,
      tierMs,
      isOrdered,
      ...decodeCommit(mark, metadata),
      identity: topic,
      position: mark,
      onTaken: (partition) => {
        this.#untrusted.delete(partition)
        if (this.#partitions.get(nameOf(partition)) === partition) this.#deps.onTaken(partition)
      },
      onOutOfRange: (partition) => this.#findPosition(partition),
      onRecreated: (partition) => this.#startAgain(partition),
    })
    if (origin === 'other_client') this.#untrusted.add(made)
    return made
  }

  /** Handles a position outside the log. Records that were deleted before they were read are reported. */
  async #findPosition(partition: Partition): Promise<void> {
    const { position, topic, identity } = partition
    const identities = await this.#positions.identities([partition])
    if (identity?.id !== identities.get(topic)?.id) return this.#startAgain(partition)
    const first = await this.#positions.firstOf(partition)
    if (first > position) {
      this.#deps.onExpired(partition, first - position)
      partition.take([], first, first)
      return
    }
    const end = await this.#positions.endOf(partition)
    if (end >= position) return pause(RETRY_MS)
    if (this.#untrusted.has(partition)) return this.#startAgain(partition)
    // The log ends before our position: a broker that was behind is the leader now. Nothing is skipped, but
    // new records reuse offsets that we have seen, so the stored progress is no longer valid.
    await this.#replace(partition, { mark: end, metadata: null, topic: identity, origin: 'known' })
  }

  /** Reads a topic that was deleted and created again. The offsets of the old topic mean nothing there. */
  async #startAgain(partition: Partition): Promise<void> {
    await this.#replace(partition, await this.#positions.findAgain(partition.topicPartition))
  }

  async #replace(partition: Partition, start: StartPosition): Promise<void> {
    const { topicPartition } = partition
    // It was released or started again in the meantime.
    if (this.#partitions.get(nameOf(partition)) !== partition || partition.isClosing) return
    this.#forget([partition])
    if (!this.#deps.isOurs(topicPartition)) return
    const again = this.#makePartition(topicPartition, start)
    this.#partitions.set(nameOf(topicPartition), again)
    await this.#deps.committer.flush([again])
  }

  // ---- releasing ------------------------------------------------------------------------------

  /** Hands partitions over to another member: waits for the handlers, then commits the finished records. */
  async handOver(topicPartitions: readonly TopicPartition[]): Promise<void> {
    const leaving = this.#markClosing(topicPartitions)
    const endsAt = performance.now() + this.#deps.drainMs
    const isIdle = () => leaving.every(({ inFlight }) => inFlight === 0)
    while (!isIdle() && performance.now() < endsAt && !this.#isClosed) {
      await this.#nextDeliveryEnd(endsAt)
    }
    this.#onDeliveryEnded = undefined
    await this.#commitBy(endsAt, leaving)
    this.#forget(leaving)
  }

  #nextDeliveryEnd(endsAt: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, endsAt - performance.now())
      this.#onDeliveryEnded = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }

  /** Called when a delivery is finished or returned. */
  deliveryEnded(): void {
    this.#onDeliveryEnded?.()
  }

  /** Drops partitions that another member may already own: nothing can be committed. */
  lose(topicPartitions: readonly TopicPartition[]): void {
    this.#forget(this.#markClosing(topicPartitions))
  }

  /** Stops delivering and commits the finished records of all partitions. */
  commitLast(endsAt: number): Promise<void> {
    return this.#commitBy(endsAt, this.#markClosing([...this.partitions]))
  }

  /** Ends starts and hand-overs that still wait. */
  close(): void {
    this.#isClosed = true
  }

  /** Commits at least once, and retries until `endsAt`. Another member would repeat uncommitted records. */
  async #commitBy(endsAt: number, partitions: readonly Partition[]): Promise<void> {
    const { committer, isFenced } = this.#deps
    await committer.flush(partitions)
    const isOpen = ({ isChanged, isMissing }: Partition) => isChanged && !isMissing
    while (partitions.some(isOpen) && performance.now() < endsAt) {
      if (isFenced()) return
      await pause(RETRY_MS)
      await committer.flush(partitions)
    }
  }

  #markClosing(topicPartitions: readonly TopicPartition[]): readonly Partition[] {
    for (const topicPartition of topicPartitions) this.#starting.delete(topicPartition)
    const leaving = topicPartitions.flatMap(
      (topicPartition) => this.#partitions.get(nameOf(topicPartition)) ?? [],
    )
    for (const partition of leaving) {
      partition.isClosing = true
      partition.touch()
    }
    return leaving
  }

  #forget(leaving: readonly Partition[]): void {
    for (const partition of leaving) {
      if (this.#partitions.get(nameOf(partition)) === partition)
        this.#partitions.delete(nameOf(partition))
    }
    this.#deps.onForgotten(leaving)
  }
}

const pause = (ms: number) =>
  new Promise<void>((resolve) => {
    setTimeout(resolve, ms).unref()
  })
