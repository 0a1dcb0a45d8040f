import { type Client, isError } from './client.ts'
import type { Epoch } from './membership.ts'
import { nameOf, type TopicPartition } from './topic-partition.ts'

/** What a group has said about a partition. */
export interface Committed {
  /** Undefined: nothing yet. */
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
/** Offsets of a transaction that is not decided yet are waited for. */
const IS_STABLE = true

/** The offsets of a group, as its coordinator keeps them. */
export class Offsets {
  readonly #client: Client
  readonly #group: string

  constructor(client: Client, group: string) {
    this.#client = client
    this.#group = group
  }

  async read(places: readonly TopicPartition[]): Promise<ReadonlyMap<string, Committed>> {
    const topics = [...grouped(places)].map(([name, ofTopic]) => ({
      name,
      partitionIndexes: ofTopic.map(({ partition }) => partition),
    }))
    const group = { groupId: this.#group, memberId: null, memberEpoch: ANY_EPOCH, topics }
    const node = await this.#coordinator()
    const { groups } = await this.#told(this.#client.ask('OffsetFetch', node, [group], IS_STABLE))
    const committed = new Map<string, Committed>()
    for (const { name: topic, partitions } of groups[0]?.topics ?? []) {
      for (const { partitionIndex: partition, committedOffset, metadata } of partitions) {
        const offset = committedOffset === NOTHING ? undefined : Number(committedOffset)
        committed.set(nameOf({ topic, partition }), { offset, metadata: metadata ?? null })
      }
    }
    return committed
  }

  /** For the epoch in which they are ours: the broker refuses one that is over. */
  async commit({ member, generation }: Epoch, commits: readonly Commit[]): Promise<void> {
    const node = await this.#coordinator()
    const topics = requestTopics(commits)
    const asked = this.#client.ask(
      'OffsetCommit',
      node,
      this.#group,
      generation,
      member,
      NO_INSTANCE,
      topics,
    )
    await this.#told(asked)
  }

  /** As part of a transaction: they count when it is committed. */
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
    await this.#told(
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
    return this.#told(this.#client.coordinatorOf(this.#group))
  }

  /** A coordinator that moved or does not answer is looked up anew. */
  async #told<T>(answer: Promise<T>): Promise<T> {
    try {
      return await answer
    } catch (error) {
      if (!isFenced(error)) this.#client.forget()
      throw error
    }
  }
}

/** The group goes on without us, or is about to. */
export const isFenced = (error: unknown): boolean =>
  isError(error, 'ILLEGAL_GENERATION', 'UNKNOWN_MEMBER_ID', 'REBALANCE_IN_PROGRESS')

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
  places: readonly P[],
): ReadonlyMap<string, readonly P[]> {
  return Map.groupBy(places, ({ topic }) => topic)
}
