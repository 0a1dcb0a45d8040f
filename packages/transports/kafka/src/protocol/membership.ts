import {
  type BaseOptions,
  type ClusterMetadata,
  type ConsumerGroupJoinPayload,
  Consumer,
  COOPERATIVE_STICKY_ASSIGNOR,
  type GroupAssignment,
} from '@platformatic/kafka'
import { assignEvenly, topicsOf } from './assignor.ts'
import { listingMissingTopics, missingNoBroker } from './client.ts'
import type { OnResult } from './fetcher.ts'
import { nameOf, type TopicPartition } from './topic-partition.ts'

/** The member id and generation in the group. Each commit contains them, and the broker checks them. */
export interface Epoch {
  readonly member: string
  readonly generation: number
}

export interface MembershipOptions {
  readonly client: BaseOptions
  readonly group: string
  readonly topics: readonly string[]
  readonly sessionMs: number
  readonly drainMs: number
  readonly onJoined: () => void
  readonly onAssigned: (topicPartitions: readonly TopicPartition[]) => void
  /** Called before partitions move to another member. They stay assigned until the promise resolves. */
  readonly onRevoked: (topicPartitions: readonly TopicPartition[]) => Promise<void>
  /** Called when partitions already belong to another member. */
  readonly onLost: (topicPartitions: readonly TopicPartition[]) => void
  readonly onResult: OnResult
}

/** 15 s between two checks for new partitions, which are then read within 30 s. */
const CHECK_MS = 15_000
/** 2 s between two checks while a topic is missing: it is read soon after it is created. */
const MISSING_CHECK_MS = 2_000
/** 200 ms between two attempts to join or to send a request. */
const RETRY_MS = 200
/** At most 3 s between two heartbeats; with more, a rebalance would wait for this member. */
const HEARTBEAT_MS = 3_000
/** 5 s more than the rebalance timeout, because a join is answered only when all members have joined. */
const ANSWER_MS = 5_000
const GROUP = 'the group'
const NO_USER_DATA = Buffer.alloc(0)

/**
 * The membership in the group. The client library joins, sends heartbeats and rejoins independently of
 * handlers. It uses the cooperative protocol, which never revokes a partition that this member keeps. Its
 * only hook runs before each join: there, partitions that move to another member are finished.
 */
export class Membership {
  readonly #options: MembershipOptions
  readonly #consumer: Consumer<Buffer, Buffer, Buffer, Buffer>
  readonly #owned = new Map<string, TopicPartition>()
  readonly #checks: readonly NodeJS.Timeout[]
  #epoch: Epoch | undefined
  #isLeaving = false
  /** Partitions of each topic of the group, as the leader assigned them; undefined for other members. */
  #assignedCounts: PartitionCounts | undefined

  constructor(options: MembershipOptions) {
    this.#options = options
    const { client, group, sessionMs, drainMs, topics } = options
    const rebalanceMs = sessionMs + drainMs
    const consumer = new Consumer({
      ...client,
      groupId: group,
      sessionTimeout: sessionMs,
      rebalanceTimeout: rebalanceMs,
      heartbeatInterval: Math.min(HEARTBEAT_MS, sessionMs / 3),
      requestTimeout: rebalanceMs + ANSWER_MS,
      protocols: [{ name: COOPERATIVE_STICKY_ASSIGNOR, version: 3 }],
      partitionAssigner: (current, members, topics, metadata) => {
        this.#assignedCounts = countsIn(metadata, topicsOf(members))
        return assignEvenly(current, members, topics, metadata)
      },
      protocolsMetadata: async () => {
        await this.#beforeJoin()
        return NO_USER_DATA
      },
      autocommit: false,
      retries: true,
      retryDelay: RETRY_MS,
    })
    this.#consumer = listingMissingTopics(missingNoBroker(consumer))
    this.#consumer.topics.trackAll(...topics)
    this.#consumer.on('consumer:group:join', (joined) => this.#joined(joined))
    this.#consumer.on('consumer:heartbeat:error', ({ error }) => options.onResult(GROUP, error))
    this.#consumer.on('consumer:heartbeat:end', () => options.onResult(GROUP, undefined))
    this.#consumer.on('error', (error: unknown) => void this.#rejoin(error))
    this.#checks = [
      setInterval(() => void this.#checkPartitions(), CHECK_MS).unref(),
      setInterval(() => void this.#checkMissing(), MISSING_CHECK_MS).unref(),
    ]
  }

  /** The current epoch; undefined before the first join. */
  get epoch(): Epoch | undefined {
    return this.#epoch
  }

  join(): void {
    this.#consumer.joinGroup({}).catch((error: unknown) => this.#rejoin(error))
  }

  /**
   * Joins again when a topic has more or fewer partitions than the group assigned. Only the leader checks: its
   * join starts a rebalance for all members.
   */
  async #checkPartitions(): Promise<void> {
    const assigned = this.#assignedCounts
    if (assigned === undefined || this.#isLeaving) return
    const topics = [...assigned.keys()]
    try {
      const metadata = await this.#consumer.metadata({ topics, forceUpdate: true })
      const counts = countsIn(metadata, topics)
      const isChanged = topics.some((topic) => counts.get(topic) !== assigned.get(topic))
      if (isChanged && this.#assignedCounts === assigned && !this.#isLeaving) this.join()
    } catch {
      // The fetcher reports brokers that do not respond. The next check may succeed.
    }
  }

  async #checkMissing(): Promise<void> {
    const counts = [...(this.#assignedCounts?.values() ?? [])]
    if (counts.includes(0)) await this.#checkPartitions()
  }

  /** Joins again after the client library stopped retrying: an operator may have fixed the cause. */
  async #rejoin(error: unknown): Promise<void> {
    if (this.#isLeaving) return
    this.#options.onResult(GROUP, error)
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS * 5).unref())
    if (!this.#isLeaving) this.join()
  }

  async #beforeJoin(): Promise<void> {
    this.#assignedCounts = undefined
    const { memberId, generationId } = this.#consumer
    const kept = new Set(topicPartitionsIn(this.#consumer.assignments ?? []).map(nameOf))
    const leaving = [...this.#owned]
      .filter(([name]) => !kept.has(name))
      .map(([, topicPartition]) => topicPartition)
    if (leaving.length === 0) return
    // Still a member, in a later generation than the known one: the group revokes these partitions.
    const isRevocation = memberId === this.#epoch?.member && generationId > this.#epoch.generation
    if (isRevocation) {
      this.#epoch = { member: memberId, generation: generationId }
      await this.#options.onRevoked(leaving)
    } else {
      this.#options.onLost(leaving)
    }
    for (const topicPartition of leaving) this.#owned.delete(nameOf(topicPartition))
  }

  #joined(joined: ConsumerGroupJoinPayload): void {
    const { memberId, generationId = 0, isLeader, assignments = [] } = joined
    const topicPartitions = topicPartitionsIn(assignments)
    // A leader without other members assigns nothing: the client library gives it all partitions.
    if (isLeader) this.#assignedCounts ??= countsOf(this.#options.topics, assignments)
    const names = new Set(topicPartitions.map(nameOf))
    const lost = [...this.#owned.values()].filter(
      (topicPartition) => !names.has(nameOf(topicPartition)),
    )
    for (const topicPartition of lost) this.#owned.delete(nameOf(topicPartition))
    if (lost.length > 0) this.#options.onLost(lost)
    this.#epoch = { member: memberId, generation: generationId }
    this.#options.onResult(GROUP, undefined)
    const added = topicPartitions.filter(
      (topicPartition) => !this.#owned.has(nameOf(topicPartition)),
    )
    for (const topicPartition of added) this.#owned.set(nameOf(topicPartition), topicPartition)
    if (added.length > 0) this.#options.onAssigned(added)
    this.#options.onJoined()
  }

  /** Returns the number of partitions of a topic that belong to this member. */
  ownedOf(topic: string): number {
    return [...this.#owned.values()].filter((one) => one.topic === topic).length
  }

  /** Compares by identity: a partition that was revoked and assigned again may have had another owner in between. */
  owns(topicPartition: TopicPartition): boolean {
    return this.#owned.get(nameOf(topicPartition)) === topicPartition
  }

  async leave(): Promise<void> {
    this.#isLeaving = true
    for (const timer of this.#checks) clearInterval(timer)
    await this.#consumer.close(true)
  }
}

const topicPartitionsIn = (assignments: readonly GroupAssignment[]): readonly TopicPartition[] =>
  assignments.flatMap(({ topic, partitions }) =>
    partitions.map((partition) => ({ topic, partition })),
  )

/** The number of partitions of each topic, by name. */
type PartitionCounts = ReadonlyMap<string, number>

const countsIn = ({ topics }: ClusterMetadata, names: readonly string[]): PartitionCounts =>
  new Map(names.map((name) => [name, topics.get(name)?.partitionsCount ?? 0]))

/** A missing topic is not assigned. It counts as one without partitions. */
const countsOf = (
  topics: readonly string[],
  assignments: readonly GroupAssignment[],
): PartitionCounts =>
  new Map([
    ...topics.map((topic) => [topic, 0] as const),
    ...assignments.map(({ topic, partitions }) => [topic, partitions.length] as const),
  ])
