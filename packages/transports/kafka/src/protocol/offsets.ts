import type { offsetCommitV9 } from '@platformatic/kafka'
import { type Client, isError, UNKNOWN_TOPIC } from './client.ts'
import type { Epoch } from './membership.ts'
import { nameOf, type TopicPartition } from './topic-partition.ts'

/** The commit of a group for a partition. */
export interface CommittedOffset {
  /** The committed offset; undefined when the group has committed nothing. */
  readonly offset: number | undefined
  readonly metadata: string | null
}

export interface Commit extends TopicPartition {
  readonly offset: number
  readonly metadata: string
}

const NOTHING = -1n
const ANY_EPOCH = -1
const NO_INSTANCE = null
/** Waits for offsets of transactions that are still open. */
const IS_STABLE = true

/** The offsets of a group, as its coordinator stores them. */
export class Offsets {
  readonly #client: Client
  readonly #group: string

  constructor(client: Client, group: string) {
    this.#client = client
    this.#group = group
  }

  async read(
    topicPartitions: readonly TopicPartition[],
  ): Promise<ReadonlyMap<string, CommittedOffset>> {
    const topics = [...grouped(topicPartitions)].map(([name, ofTopic]) => ({
      name,
      partitionIndexes: ofTopic.map(({ partition }) => partition),
    }))
    const group = { groupId: this.#group, memberId: null, memberEpoch: ANY_EPOCH, topics }
    const node = await this.#coordinator()
    const { groups } = await this.#forgetOnError(
      this.#client.ask('OffsetFetch', node, [group], IS_STABLE),
    )
    const committed = new Map<string, CommittedOffset>()
    for (const { name: topic, partitions } of groups[0]?.topics ?? []) {
      for (const { partitionIndex: partition, committedOffset, metadata } of partitions) {
        const offset = committedOffset === NOTHING ? undefined : Number(committedOffset)
        committed.set(nameOf({ topic, partition }), { offset, metadata: metadata ?? null })
      }
    }
    return committed
  }

  /**
   * Commits in the epoch of the assignment; the broker rejects commits of an older epoch. Returns the names of the
   * partitions whose topic does not exist. The other partitions are committed.
   */
  async commit(
    { member, generation }: Epoch,
    commits: readonly Commit[],
  ): Promise<ReadonlySet<string>> {
    const node = await this.#coordinator()
    const topics = requestTopics(commits)
    const request = this.#client.ask(
      'OffsetCommit',
      node,
      this.#group,
      generation,
      member,
      NO_INSTANCE,
      topics,
    )
    try {
      await this.#forgetOnError(request)
      return new Set()
    } catch (error) {
      const missing = missingIn(error)
      if (missing === undefined) throw error
      return missing
    }
  }

  /** Commits as part of a transaction; the offsets count when the transaction is committed. */
  async commitWith(
    transaction: {
      readonly id: string
      readonly producerId: bigint
      readonly producerEpoch: number
    },
    { member, generation }: Epoch,
    commits: readonly Commit[],
  ): Promise<void> {
    const node = await this.#coordinator()
    const { id, producerId, producerEpoch } = transaction
    await this.#forgetOnError(
      this.#client.ask(
        'TxnOffsetCommit',
        node,
        id,
        this.#group,
        producerId,
        producerEpoch,
        generation,
        member,
        NO_INSTANCE,
        requestTopics(commits),
      ),
    )
  }

  async #coordinator(): Promise<number> {
    return this.#forgetOnError(this.#client.coordinatorOf(this.#group))
  }

  /** Clears the cached coordinator when the request fails, because it may have moved. */
  async #forgetOnError<T>(answer: Promise<T>): Promise<T> {
    try {
      return await answer
    } catch (error) {
      if (!isFenced(error)) this.#client.forget()
      throw error
    }
  }
}

/** Returns whether the group has started a new generation, or is about to. */
export const isFenced = (error: unknown): boolean =>
  isError(error, 'ILLEGAL_GENERATION', 'UNKNOWN_MEMBER_ID', 'REBALANCE_IN_PROGRESS')

/** Returns the partitions of missing topics; undefined when another error affects a partition. */
function missingIn(error: unknown): ReadonlySet<string> | undefined {
  const { response } = error as { readonly response?: offsetCommitV9.OffsetCommitResponse }
  const missing = new Set<string>()
  for (const { name: topic, partitions } of response?.topics ?? []) {
    for (const { partitionIndex: partition, errorCode } of partitions) {
      if (errorCode === UNKNOWN_TOPIC) missing.add(nameOf({ topic, partition }))
      else if (errorCode !== 0) return undefined
    }
  }
  return missing.size > 0 ? missing : undefined
}

function requestTopics(commits: readonly Commit[]) {
  return [...grouped(commits)].map(([name, ofTopic]) => ({
    name,
    partitions: ofTopic.map(({ partition, offset, metadata }) => ({
      partitionIndex: partition,
      committedOffset: BigInt(offset),
      committedLeaderEpoch: ANY_EPOCH,
      committedMetadata: metadata,
    })),
  }))
}

function grouped<P extends TopicPartition>(
  topicPartitions: readonly P[],
): ReadonlyMap<string, readonly P[]> {
  return Map.groupBy(topicPartitions, ({ topic }) => topic)
}
