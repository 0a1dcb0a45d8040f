// The broker of `dev/services`, and the untimed steps of a benchmark on it.
import { randomUUID } from 'node:crypto'
import { Admin, type MessageToProduce, Producer } from '@platformatic/kafka'
import { urlsOf } from '@redrive/dev-support'
import { deadLetterTopic, retryTopic, TIERS_MS } from '@redrive/kafka'
import { PATIENCE_MS } from '../patience.ts'

/** Number of records in one batch of one partition. */
const FILL_BATCH = 500
/** 16 MB. The broker deletes whole segments: with small ones, few consumed records stay on the disk. */
const SEGMENT_BYTES = 16_777_216
const LATEST = -1n

type Record = MessageToProduce<Buffer, Buffer, Buffer, Buffer>

/**
 * Names that no test uses, because the broker is shared. So leftovers of an aborted run can be
 * recognised.
 */
export interface Names {
  readonly topic: string
  /** The consumer group; groups are global in a broker. */
  readonly group: string
}

export function ownNames(): Names {
  const id = randomUUID()
  return { topic: `redrive-benchmark-${id}`, group: `redrive-benchmark-${id}` }
}

export const brokers = (): Promise<readonly string[]> => urlsOf('kafka')

/** Creates the record with a number. */
export type RecordOf = (number: number) => Pick<Record, 'key' | 'value' | 'headers'>

/** Returns the dead-letter topic of the source, for handwritten loops. */
export const deadLettersOf = ({ topic, group }: Names): string => deadLetterTopic(topic, group)
/**
 * Returns the retry topic with the longest delay, so that nothing comes back during the
 * measurement.
 */
export const retriesOf = ({ topic, group }: Names): string =>
  retryTopic(topic, group, TIERS_MS.at(-1) as number)

/** A separate connection of the benchmark: declares, fills, counts and cleans up. */
export class Broker {
  readonly hosts: readonly string[]
  readonly #admin: Admin
  readonly #producer: Producer<Buffer, Buffer, Buffer, Buffer>

  constructor(hosts: readonly string[]) {
    this.hosts = hosts
    const base = {
      clientId: 'benchmark',
      bootstrapBrokers: [...hosts],
      retries: 10,
      retryDelay: 200,
    }
    this.#admin = new Admin(base)
    this.#producer = new Producer({ ...base, autocreateTopics: false })
  }

  /** Creates the topic if it does not exist; resolves when the broker lists it. */
  async declare(partitions: number, topic: string): Promise<void> {
    if (await this.has(topic)) return
    const configs = [{ name: 'segment.bytes', value: String(SEGMENT_BYTES) }]
    await this.#admin.createTopics({ topics: [topic], partitions, replicas: 1, configs })
    const endsAt = performance.now() + PATIENCE_MS
    while (!(await this.has(topic))) {
      if (performance.now() > endsAt)
        throw new Error(`The broker does not list the new topic "${topic}"`)
    }
  }

  async has(topic: string): Promise<boolean> {
    return (await this.#admin.listTopics()).includes(topic)
  }

  /** Puts `count` records into the topic, evenly over its partitions. */
  async fill(topic: string, partitions: number, count: number, recordOf: RecordOf): Promise<void> {
    for (let from = 0; from < count; from += FILL_BATCH * partitions) {
      const to = Math.min(count, from + FILL_BATCH * partitions)
      const messages: Record[] = []
      for (let number = from; number < to; number += 1) {
        messages.push({ topic, partition: number % partitions, ...recordOf(number) })
      }
      await this.#producer.send({ messages })
    }
  }

  /** Returns the end offsets, by partition. */
  async ends(topic: string, partitions: number): Promise<readonly number[]> {
    const requested = Array.from({ length: partitions }, (_, partitionIndex) => ({
      partitionIndex,
      timestamp: LATEST,
    }))
    const [found] = await this.#admin.listOffsets({
      topics: [{ name: topic, partitions: requested }],
    })
    const ends = zeros(partitions)
    for (const { partitionIndex, offset } of found?.partitions ?? []) {
      ends[partitionIndex] = Number(offset)
    }
    return ends
  }

  async count(topic: string, partitions: number): Promise<number> {
    return (await this.ends(topic, partitions)).reduce((sum, end) => sum + end, 0)
  }

  /** Returns the committed offsets of the group, by partition. */
  async committed({ topic, group }: Names, partitions: number): Promise<readonly number[]> {
    const partitionIndexes = Array.from({ length: partitions }, (_, index) => index)
    const [found] = await this.#admin.listConsumerGroupOffsets({
      groups: [{ groupId: group, topics: [{ name: topic, partitionIndexes }] }],
    })
    const offsets = zeros(partitions)
    for (const { partitionIndex, committedOffset } of found?.topics[0]?.partitions ?? []) {
      offsets[partitionIndex] = Math.max(0, Number(committedOffset))
    }
    return offsets
  }

  /** Polls without a pause, because the last few milliseconds of a sample matter. */
  async untilCommitted(names: Names, ends: readonly number[]): Promise<void> {
    const endsAt = performance.now() + PATIENCE_MS
    for (;;) {
      const committed = await this.committed(names, ends.length)
      if (committed.every((offset, partition) => offset === ends[partition])) return
      if (performance.now() > endsAt) {
        throw new Error(`Committed is ${committed.join(', ')} instead of ${ends.join(', ')}`)
      }
    }
  }

  /** Deletes all records to free the disk; all consumers are at the end of the log. */
  async deleteRecords(topic: string, ends: readonly number[]): Promise<void> {
    const partitions = ends.map((end, partition) => ({ partition, offset: BigInt(end) }))
    await this.#admin.deleteRecords({ topics: [{ name: topic, partitions }] })
  }

  /** Deletes all topics of the source; a missing topic counts as deleted. */
  async delete({ topic }: Names): Promise<void> {
    const known = await this.#admin.listTopics()
    const own = known.filter((name) => name === topic || name.startsWith(`${topic}.`))
    if (own.length > 0) await this.#admin.deleteTopics({ topics: own })
  }

  async close(): Promise<void> {
    await Promise.all([this.#admin.close(), this.#producer.close()])
  }
}

const zeros = (length: number): number[] => Array.from({ length }, () => 0)
