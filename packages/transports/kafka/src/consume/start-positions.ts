import { type Client, isMissing } from '../protocol/client.ts'
import type { CommittedOffset, Offsets } from '../protocol/offsets.ts'
import { nameOf, type TopicPartition } from '../protocol/topic-partition.ts'
import { isOfEarlierTopic, topicIn, type TopicIdentity } from './crash-evidence.ts'
import { EARLIEST, endsOf, LATEST } from './lag.ts'

/** Where a partition starts to be read. */
export interface StartPosition {
  readonly mark: number
  /** Text of the commit; null when the position is not a committed one. */
  readonly metadata: string | null
  readonly topic: TopicIdentity | undefined
  readonly origin: /** A commit that names the topic, or a position in the log. */
    | 'known'
    /** A commit of another client, which may belong to an earlier topic of the same name. */
    | 'other_client'
    /** The topic was deleted and created again since the last commit. */
    | 'recreated'
}

export interface StartPositionsDeps {
  readonly client: Client
  readonly offsets: Offsets
  /** Returns where a new group starts to read a topic. */
  readonly from: (topic: string) => 'earliest' | 'latest'
}

const NOTHING_COMMITTED: CommittedOffset = { offset: undefined, metadata: null }

/** Finds the positions at which partitions start: committed offsets, or the ends of the log. */
export class StartPositions {
  readonly #deps: StartPositionsDeps

  constructor(deps: StartPositionsDeps) {
    this.#deps = deps
  }

  /** Returns the start position of each partition. A partition whose topic is missing has none. */
  async find(
    topicPartitions: readonly TopicPartition[],
  ): Promise<ReadonlyMap<TopicPartition, StartPosition>> {
    const identities = await this.identities(topicPartitions)
    const existing = topicPartitions.filter(({ topic }) => identities.has(topic))
    if (existing.length === 0) return new Map()
    const committed = await this.#deps.offsets.read(existing)
    const find = async (topicPartition: TopicPartition) => {
      const commit = committed.get(nameOf(topicPartition)) ?? NOTHING_COMMITTED
      const identity = identities.get(topicPartition.topic)
      return [topicPartition, await this.#after(topicPartition, commit, identity)] as const
    }
    return new Map(await Promise.all(existing.map(find)))
  }

  async #after(
    topicPartition: TopicPartition,
    { offset, metadata }: CommittedOffset,
    topic: TopicIdentity | undefined,
  ): Promise<StartPosition> {
    if (offset === undefined) {
      const isLatest =
        this.#deps.from(topicPartition.topic) === 'latest' &&
        !(await this.#isAdded(topicPartition, topic))
      const mark = await (isLatest ? this.endOf(topicPartition) : this.firstOf(topicPartition))
      return { mark, metadata: null, topic, origin: 'known' }
    }
    if (isOfEarlierTopic(metadata, topic?.id)) return this.#again(topicPartition, topic)
    const origin = topicIn(metadata) === undefined ? 'other_client' : 'known'
    return { mark: offset, metadata, topic, origin }
  }

  /** Returns the position of a topic that was deleted and created again. */
  async findAgain(topicPartition: TopicPartition): Promise<StartPosition> {
    const identities = await this.identities([topicPartition])
    return this.#again(topicPartition, identities.get(topicPartition.topic))
  }

  /** The group has consumed the topic until it was deleted, so it has read none of the new records. */
  async #again(
    topicPartition: TopicPartition,
    topic: TopicIdentity | undefined,
  ): Promise<StartPosition> {
    const mark = await this.firstOf(topicPartition)
    return { mark, metadata: null, topic, origin: 'recreated' }
  }

  /**
   * Whether the group consumed the topic when it did not have this partition: no member has read its records. A
   * commit of another partition alone does not show this, because members of a new group start at different times.
   */
  async #isAdded(
    { topic, partition }: TopicPartition,
    { id, partitions = 0 }: Partial<TopicIdentity> = {},
  ): Promise<boolean> {
    const all = Array.from({ length: partitions }, (_, index) => ({ topic, partition: index }))
    const committed = await this.#deps.offsets.read(all)
    return [...committed.values()].some(({ metadata }) => {
      const before = topicIn(metadata)
      return before !== undefined && before.id === id && before.partitions <= partition
    })
  }

  /** Returns the current identity of each topic that exists, by name. */
  async identities(
    topicPartitions: readonly TopicPartition[],
  ): Promise<ReadonlyMap<string, TopicIdentity>> {
    const names = new Set(topicPartitions.map(({ topic }) => topic))
    const metadata = await this.#deps.client.metadataWithMissing([...names], true)
    return new Map(
      [...metadata.topics]
        .filter(([name]) => !isMissing(metadata, name))
        .map(([name, { id, partitionsCount }]) => [name, { id, partitions: partitionsCount }]),
    )
  }

  /** Returns the offset of the first record in the log. */
  firstOf(topicPartition: TopicPartition): Promise<number> {
    return this.#lookUp(topicPartition, EARLIEST)
  }

  /** Returns the offset after the last record in the log. */
  endOf(topicPartition: TopicPartition): Promise<number> {
    return this.#lookUp(topicPartition, LATEST)
  }

  async #lookUp(topicPartition: TopicPartition, which: bigint): Promise<number> {
    const ends = await endsOf(this.#deps.client, [topicPartition], which)
    return ends.get(nameOf(topicPartition)) ?? 0
  }
}
