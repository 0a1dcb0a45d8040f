import type { Client } from '../protocol/client.ts'
import { decodeCommit, isOfEarlierTopic } from './crash-evidence.ts'
import { existing } from '../declare.ts'
import { isTimeRecord, type KafkaRecord } from '../delivery.ts'
import { Fetcher, type Reading } from '../protocol/fetcher.ts'
import { nameOf, type TopicPartition } from '../protocol/topic-partition.ts'
import type { CommittedOffset, Offsets } from '../protocol/offsets.ts'
import type { Progress } from './progress.ts'

export const EARLIEST: bigint = -2n
export const LATEST: bigint = -1n
const ANY_EPOCH = -1
const CONSUMER_REPLICA_ID = -1
const READ_COMMITTED = 1

/** Up to 200 offsets, the records are read and counted. Above that, transaction markers are included in the count. */
const COUNT_RECORDS_UP_TO = 200

/** 25 attempts in 5 s: a restarted broker has closed the connection and needs time to load its groups. */
const TRIES = 25
const RETRY_MS = 200

/** Returns the number of records that a group has not finished, in topics that exist. */
export async function lagOf(
  client: Client,
  offsets: Offsets,
  topics: readonly string[],
): Promise<number> {
  for (let tries = 1; ; tries++) {
    try {
      return await lagNow(client, offsets, topics)
    } catch (error) {
      if (tries >= TRIES) throw error
      client.forget()
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
    }
  }
}

async function lagNow(
  client: Client,
  offsets: Offsets,
  topics: readonly string[],
): Promise<number> {
  const existingTopics = await existing(client.base, topics)
  if (existingTopics.length === 0) return 0
  const { topics: found } = await client.metadata(existingTopics)
  const topicPartitions = [...found].flatMap(([topic, { partitionsCount }]) =>
    Array.from({ length: partitionsCount }, (_, partition) => ({ topic, partition })),
  )
  const [committed, first, end] = await Promise.all([
    offsets.read(topicPartitions),
    endsOf(client, topicPartitions, EARLIEST),
    endsOf(client, topicPartitions, LATEST),
  ])
  const lags = topicPartitions.map((topicPartition): PartitionLag => {
    const { topic } = topicPartition
    const { offset = 0, metadata } = commitIn(committed, topicPartition, found.get(topic)?.id)
    const mark = Math.max(offset, first.get(nameOf(topicPartition)) ?? 0)
    const { progress } = decodeCommit(mark, metadata)
    return { topicPartition, progress, end: Math.max(mark, end.get(nameOf(topicPartition)) ?? 0) }
  })
  const all = sum(lags.map(offsetsIn))
  if (all === 0 || all > COUNT_RECORDS_UP_TO) return all
  const open = lags.filter((one) => offsetsIn(one) > 0)
  return sum(await Promise.all(open.map((one) => recordsIn(client, one))))
}

/** Returns the commit of a partition; nothing when it belongs to an earlier topic of this name. */
function commitIn(
  committed: ReadonlyMap<string, CommittedOffset>,
  topicPartition: TopicPartition,
  topicId: string | undefined,
): CommittedOffset {
  const commit = committed.get(nameOf(topicPartition))
  const isValid = commit !== undefined && !isOfEarlierTopic(commit.metadata, topicId)
  return isValid ? commit : { offset: undefined, metadata: null }
}

/** A partition from the committed offset of its group to its end. */
interface PartitionLag {
  readonly topicPartition: TopicPartition
  readonly progress: Progress
  readonly end: number
}

const sum = (numbers: readonly number[]) => numbers.reduce((total, one) => total + one, 0)

const offsetsIn = ({ progress, end }: PartitionLag) => end - progress.mark - progress.finishedAbove

async function recordsIn(
  client: Client,
  { topicPartition, progress, end }: PartitionLag,
): Promise<number> {
  const { promise: counted, resolve, reject } = Promise.withResolvers<number>()
  let count = 0
  let next = progress.mark
  const fetcher = new Fetcher({
    client,
    topics: [topicPartition.topic],
    wanted: () => (next < end ? [reading] : []),
    onResult: (_, error) => reject(error),
    onMissing: (topic) => reject(new Error(`The topic "${topic}" was deleted.`)),
  })
  const reading: Reading = {
    ...topicPartition,
    position: next,
    take(records, position) {
      const isOpen = (record: KafkaRecord) =>
        record.offset < end && !progress.has(record.offset) && !isTimeRecord(record)
      count += records.filter(isOpen).length
      next = position
      reading.position = position
      if (next >= end) resolve(count)
    },
    outOfRange: () => Promise.resolve(resolve(count)),
  }
  fetcher.wake()
  try {
    return await counted
  } finally {
    fetcher.stop()
  }
}

/** Returns the first or last offsets of the logs, by partition name. */
export async function endsOf(
  client: Client,
  topicPartitions: readonly TopicPartition[],
  timestamp: bigint,
): Promise<ReadonlyMap<string, number>> {
  const { topics } = await client.metadata([...new Set(topicPartitions.map(({ topic }) => topic))])
  const leaderOf = ({ topic, partition }: TopicPartition) =>
    topics.get(topic)?.partitions[partition]?.leader ?? -1
  const ends = new Map<string, number>()
  for (const [leader, led] of Map.groupBy(topicPartitions, leaderOf)) {
    const request = led.map(({ topic, partition }) => ({
      name: topic,
      partitions: [{ partitionIndex: partition, currentLeaderEpoch: ANY_EPOCH, timestamp }],
    }))
    try {
      const answer = await client.ask(
        'ListOffsets',
        leader,
        CONSUMER_REPLICA_ID,
        READ_COMMITTED,
        request,
      )
      for (const { name: topic, partitions } of answer.topics) {
        for (const { partitionIndex: partition, offset } of partitions) {
          ends.set(nameOf({ topic, partition }), Number(offset))
        }
      }
    } catch (error) {
      client.forget()
      throw error
    }
  }
  return ends
}
