import type { Client } from '../protocol/client.ts'
import type { Committed, Offsets } from '../protocol/offsets.ts'
import { nameOf, type TopicPartition } from '../protocol/topic-partition.ts'
import { isOfEarlierTopic, topicIdIn } from './crash-evidence.ts'
import { EARLIEST, endsOf, LATEST } from './lag.ts'

/** Where a partition starts to be read. */
export interface StartPosition {
  readonly mark: number
  /** Text of the commit; null when the position is not a committed one. */
  readonly metadata: string | null
  /** Id of the topic. A topic that is deleted and created again has another one. */
  readonly topicId: string | undefined
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
  /** Returns the start position of a group without commits. */
  readonly from: (topic: string) => 'earliest' | 'latest'
}

const NOTHING_COMMITTED: Committed = { offset: undefined, metadata: null }

/** Finds the positions at which partitions start: committed offsets, or the ends of the log. */
export class StartPositions {
  readonly #deps: StartPositionsDeps

  constructor(deps: StartPositionsDeps) {
    this.#deps = deps
  }

  /** Returns the start position of each partition, in their order. */
  async find(topicPartitions: readonly TopicPartition[]): Promise<readonly StartPosition[]> {
    const ids = await this.topicIds(topicPartitions)
    const committed = await this.#deps.offsets.read(topicPartitions)
    return Promise.all(
      topicPartitions.map((topicPartition) => {
        const commit = committed.get(nameOf(topicPartition)) ?? NOTHING_COMMITTED
        return this.#after(topicPartition, commit, ids.get(topicPartition.topic))
      }),
    )
  }

  async #after(
    topicPartition: TopicPartition,
    { offset, metadata }: Committed,
    topicId: string | undefined,
  ): Promise<StartPosition> {
    if (offset !== undefined && !isOfEarlierTopic(metadata, topicId)) {
      const origin = topicIdIn(metadata) === undefined ? 'other_client' : 'known'
      return { mark: offset, metadata, topicId, origin }
    }
    const mark = await this.#first(topicPartition)
    const origin = offset === undefined ? 'known' : 'recreated'
    return { mark, metadata: null, topicId, origin }
  }

  /** Returns the position of a topic that was deleted and created again. */
  async findAgain(topicPartition: TopicPartition): Promise<StartPosition> {
    const ids = await this.topicIds([topicPartition])
    const topicId = ids.get(topicPartition.topic)
    const mark = await this.#first(topicPartition)
    return { mark, metadata: null, topicId, origin: 'recreated' }
  }

  /** Returns the position of a partition without a valid commit. */
  async #first(topicPartition: TopicPartition): Promise<number> {
    const isLatest =
      this.#deps.from(topicPartition.topic) === 'latest' && !(await this.#isAdded(topicPartition))
    return isLatest ? this.endOf(topicPartition) : this.firstOf(topicPartition)
  }

  /** Whether the group consumes the topic already: then the partition was added, and nobody has read its records. */
  async #isAdded({ topic }: TopicPartition): Promise<boolean> {
    const { topics } = await this.#deps.client.metadata([topic])
    const { id, partitionsCount = 0 } = topics.get(topic) ?? {}
    const all = Array.from({ length: partitionsCount }, (_, partition) => ({ topic, partition }))
    const committed = await this.#deps.offsets.read(all)
    return [...committed.values()].some(
      ({ offset, metadata }) => offset !== undefined && !isOfEarlierTopic(metadata, id),
    )
  }

  /** Returns the current id of each topic, by name. */
  async topicIds(topicPartitions: readonly TopicPartition[]): Promise<ReadonlyMap<string, string>> {
    const names = new Set(topicPartitions.map(({ topic }) => topic))
    const { topics } = await this.#deps.client.metadata([...names], true)
    return new Map([...topics].map(([name, { id }]) => [name, id]))
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
