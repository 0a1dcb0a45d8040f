import { CrashEvidence, decodeCommit } from '../consume/crash-evidence.ts'
import { Partition } from '../consume/partition.ts'
import { nameOf, type TopicPartition } from '../protocol/topic-partition.ts'
import type { GroupJoined, KafkaJsAdmin, KafkaJsConsumer } from './client.ts'
import type { Committer } from './committer.ts'

export interface AssignmentDeps {
  readonly consumer: KafkaJsConsumer
  readonly admin: KafkaJsAdmin | undefined
  readonly group: string
  readonly committer: Committer
  /** Delay of the records of each retry topic, in milliseconds. */
  readonly tiers: ReadonlyMap<string, number>
  readonly isOrdered: (topic: string) => boolean
  /** Called when a partition has taken records. */
  readonly onTaken: (partition: Partition) => void
  /** Called with partitions that are no longer assigned. */
  readonly onForgotten: (partitions: readonly Partition[]) => void
}

/** The offset that clients return when a group has committed nothing. */
const NOTHING_COMMITTED = -1

/** The partitions that the group has assigned to the consumer of the application, and those paused in it. */
export class Assignment {
  readonly #deps: AssignmentDeps
  readonly #partitions = new Map<string, Partition>()
  /** Partitions whose committed offset is being read. */
  readonly #starting = new Map<string, Promise<Partition | undefined>>()
  readonly #paused = new Set<Partition>()
  #member: string | undefined
  /** The assigned partitions; undefined when the client does not report them. */
  #assigned: ReadonlySet<string> | undefined
  #isStable = true
  #isClosed = false

  constructor(deps: AssignmentDeps) {
    this.#deps = deps
    try {
      this.#listen(deps.consumer)
    } catch (error) {
      // The Confluent client has this method, but not its events. The application calls `revoked` instead.
      if ((error as { readonly type?: unknown }).type !== 'ERR__NOT_IMPLEMENTED') throw error
    }
  }

  #listen(consumer: KafkaJsConsumer): void {
    consumer.on?.('consumer.group_join', (event) => this.#joined(event))
    consumer.on?.('consumer.rebalancing', () => this.#rebalancing())
    consumer.on?.('consumer.stop', () => this.#lose([...this.partitions]))
  }

  /** The partitions that have started. */
  get partitions(): Iterable<Partition> {
    return this.#partitions.values()
  }

  /** Whether the group is stable; false during a rebalance. */
  get isStable(): boolean {
    return this.#isStable
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  // ---- starting ---------------------------------------------------------------------------------

  /** Returns the partition, and starts it if needed. Returns undefined if it is not assigned. */
  async partition(topicPartition: TopicPartition, first: number): Promise<Partition | undefined> {
    const name = nameOf(topicPartition)
    const known = this.#partitions.get(name)
    if (known !== undefined || !this.#isOurs(topicPartition)) return known
    const starting = this.#starting.get(name) ?? this.#startPartition(topicPartition, first)
    this.#starting.set(name, starting)
    try {
      return await starting
    } finally {
      this.#starting.delete(name)
    }
  }

  #isOurs(topicPartition: TopicPartition): boolean {
    return this.#assigned?.has(nameOf(topicPartition)) ?? true
  }

  async #startPartition(
    topicPartition: TopicPartition,
    first: number,
  ): Promise<Partition | undefined> {
    const { tiers, isOrdered, onTaken } = this.#deps
    const member = this.#member
    const { offset, metadata } = await this.#committed(topicPartition)
    if (this.#member !== member || !this.#isOurs(topicPartition) || this.#isClosed) return undefined
    // The client starts at the committed offset, or at its configured start position.
    const isCommitted = offset >= 0 && offset <= first
    const mark = isCommitted ? offset : first
    const partition = new Partition({
      topicPartition,
      progress: decodeCommit(mark, isCommitted ? metadata : null).progress,
      deaths: new CrashEvidence(),
      tierMs: tiers.get(topicPartition.topic) ?? 0,
      position: mark,
      isOrdered: isOrdered(topicPartition.topic),
      onTaken,
      onOutOfRange: () => Promise.resolve(),
    })
    this.#partitions.set(nameOf(topicPartition), partition)
    return partition
  }

  async #committed({
    topic,
    partition,
  }: TopicPartition): Promise<{ offset: number; metadata: string | null }> {
    const { admin, group } = this.#deps
    const found = (await admin?.fetchOffsets({ groupId: group, topics: [topic] })) ?? []
    const ofPartition = found
      .find((one) => one.topic === topic)
      ?.partitions.find((one) => one.partition === partition)
    return {
      offset: Number(ofPartition?.offset ?? NOTHING_COMMITTED),
      metadata: ofPartition?.metadata ?? null,
    }
  }

  // ---- pausing in the client --------------------------------------------------------------------

  /** Pauses the partition in the client while its read-ahead is full, to limit memory; resumes it when there is room. */
  pauseOrResume(partition: Partition): void {
    const isPaused = this.#paused.has(partition)
    if (partition.wantsMore === !isPaused || this.#isClosed) return
    if (isPaused) {
      this.#paused.delete(partition)
      const { topic, partition: number } = partition
      this.#deps.consumer.resume([{ topic, partitions: [number] }])
    } else {
      this.#paused.add(partition)
      this.pause(partition)
    }
  }

  pause({ topic, partition }: TopicPartition): void {
    this.#deps.consumer.pause([{ topic, partitions: [partition] }])
  }

  // ---- rebalancing ------------------------------------------------------------------------------

  /** Commits finished records for the last time before a rebalance. The client does not wait for it. */
  #rebalancing(): void {
    this.#isStable = false
    void this.#deps.committer.commit(true)
  }

  #joined({ payload: { memberId, memberAssignment } }: GroupJoined): void {
    // A new member id means that this member had left: other members may have owned the partitions since.
    const isOther = this.#member !== undefined && this.#member !== memberId
    this.#member = memberId
    this.#isStable = true
    this.#assigned = new Set(
      Object.entries(memberAssignment).flatMap(([topic, partitions]) =>
        partitions.map((partition) => nameOf({ topic, partition })),
      ),
    )
    const owned = [...this.partitions]
    this.#lose(isOther ? owned : owned.filter((partition) => !this.#isOurs(partition)))
    this.#resumeAssigned(memberAssignment)
    this.#deps.committer.changed()
  }

  /** Resumes partitions with room: the client keeps the paused state of a partition after it was revoked. */
  #resumeAssigned(memberAssignment: GroupJoined['payload']['memberAssignment']): void {
    for (const [topic, partitions] of Object.entries(memberAssignment)) {
      const free = partitions.filter((partition) => {
        const ours = this.#partitions.get(nameOf({ topic, partition }))
        return ours === undefined || !this.#paused.has(ours)
      })
      if (free.length > 0) this.#deps.consumer.resume([{ topic, partitions: free }])
    }
  }

  /** Releases partitions, for clients without rebalance events. Resolves when their finished records are committed. */
  async revoked(topicPartitions: readonly TopicPartition[]): Promise<void> {
    const leaving = topicPartitions.flatMap(
      (topicPartition) => this.#partitions.get(nameOf(topicPartition)) ?? [],
    )
    for (const partition of leaving) partition.isClosing = true
    await this.#deps.committer.commit()
    this.#lose(leaving)
  }

  #lose(leaving: readonly Partition[]): void {
    for (const partition of leaving) {
      partition.isClosing = true
      this.#partitions.delete(nameOf(partition))
      this.#paused.delete(partition)
    }
    this.#deps.onForgotten(leaving)
  }

  /** Starts no further partition, and pauses all partitions in the client. */
  close(): void {
    this.#isClosed = true
    for (const partition of this.partitions) this.pause(partition)
  }
}
