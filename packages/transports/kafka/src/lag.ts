import type { Client } from './client.ts'
import { decodeCommit } from './deaths.ts'
import { existing } from './declare.ts'
import { Fetcher, type Reading } from './fetch.ts'
import { nameOf, type TopicPartition } from './topic-partition.ts'
import type { Offsets } from './offsets.ts'
import type { Progress } from './progress.ts'

export const EARLIEST: bigint = -2n
export const LATEST: bigint = -1n
const ANY_EPOCH = -1
const OF_CONSUMER = -1
const READ_COMMITTED = 1

/** 200: as many are read to be counted. Beyond that, what transactions wrote for themselves counts, too. */
const COUNTED = 200

/** 5 s of trying: a broker that was restarted has closed our connection, and takes a moment to know its groups. */
const TRIES = 25
const RETRY_MS = 200

/** Records that a group has not finished, in topics that exist. */
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
  const there = await existing(client.base, topics)
  if (there.length === 0) return 0
  const { topics: found } = await client.metadata(there)
  const places = [...found].flatMap(([topic, { partitionsCount }]) =>
    Array.from({ length: partitionsCount }, (_, partition) => ({ topic, partition })),
  )
  const [committed, first, end] = await Promise.all([
    offsets.read(places),
    endsOf(client, places, EARLIEST),
    endsOf(client, places, LATEST),
  ])
  const behind = places.map((place): Behind => {
    const { offset = 0, metadata = null } = committed.get(nameOf(place)) ?? {}
    const mark = Math.max(offset, first.get(nameOf(place)) ?? 0)
    const { progress } = decodeCommit(mark, metadata)
    return { place, progress, end: Math.max(mark, end.get(nameOf(place)) ?? 0) }
  })
  const all = sum(behind.map(offsetsIn))
  if (all === 0 || all > COUNTED) return all
  const open = behind.filter((one) => offsetsIn(one) > 0)
  return sum(await Promise.all(open.map((one) => recordsIn(client, one))))
}

/** A partition from the mark of its group to its end. */
interface Behind {
  readonly place: TopicPartition
  readonly progress: Progress
  readonly end: number
}

const sum = (numbers: readonly number[]) => numbers.reduce((total, one) => total + one, 0)

const offsetsIn = ({ progress, end }: Behind) => end - progress.mark - progress.finishedAbove

async function recordsIn(client: Client, { place, progress, end }: Behind): Promise<number> {
  const { promise: over, resolve, reject } = Promise.withResolvers<number>()
  let count = 0
  let next = progress.mark
  const fetcher = new Fetcher({
    client,
    topics: [place.topic],
    wanted: () => (next < end ? [reading] : []),
    onTrouble: (_, error) => reject(error),
  })
  const reading: Reading = {
    ...place,
    position: next,
    take(records, position) {
      count += records.filter(({ offset }) => offset < end && !progress.has(offset)).length
      next = position
      reading.position = position
      if (next >= end) resolve(count)
    },
    outOfRange: () => Promise.resolve(resolve(count)),
  }
  fetcher.wake()
  try {
    return await over
  } finally {
    fetcher.stop()
  }
}

/** Where logs begin or end, by name of the partition. */
export async function endsOf(
  client: Client,
  places: readonly TopicPartition[],
  timestamp: bigint,
): Promise<ReadonlyMap<string, number>> {
  const { topics } = await client.metadata([...new Set(places.map(({ topic }) => topic))])
  const leaderOf = ({ topic, partition }: TopicPartition) =>
    topics.get(topic)?.partitions[partition]?.leader ?? -1
  const ends = new Map<string, number>()
  for (const [leader, led] of Map.groupBy(places, leaderOf)) {
    const request = led.map(({ topic, partition }) => ({
      name: topic,
      partitions: [{ partitionIndex: partition, currentLeaderEpoch: ANY_EPOCH, timestamp }],
    }))
    try {
      const answer = await client.ask('ListOffsets', leader, OF_CONSUMER, READ_COMMITTED, request)
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
