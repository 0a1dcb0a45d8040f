import { type fetchV17, IS_CONTROL, IS_TRANSACTIONAL } from '@platformatic/kafka'
import { type Client, isError, type Metadata } from './client.ts'
import type { KafkaRecord } from './headers.ts'
import type { TopicPartition } from './topic-partition.ts'

type PartitionAnswer = fetchV17.FetchResponsePartition
type Batch = NonNullable<PartitionAnswer['records']>[number]

/** Something that is read from a position on. */
export interface Reading extends TopicPartition {
  /** The next offset to ask for. */
  position: number
  /** Takes what was read, in order; `next` is where to go on, `end` where the log ends by now. */
  take(records: readonly KafkaRecord[], next: number, end: number): void
  /** The log does not reach back to the position any more, or not yet that far. */
  outOfRange(): Promise<void>
}

export interface FetcherParts {
  readonly client: Client
  readonly topics: readonly string[]
  /** What may be read now. */
  readonly wanted: () => Iterable<Reading>
  readonly onTrouble: OnTrouble
}

/** Something does not answer, or, without an error, does again. */
export type OnTrouble = (where: string, error: unknown) => void

/** 250 ms: how late an answer without data may be. Also how late a partition is read that was full when we asked. */
const WAIT_MS = 250
/** 8 MB an answer, 1 MB a partition: what is read ahead is memory. */
const MOST_BYTES = 8_388_608
const PARTITION_BYTES = 1_048_576
/** 100 ms, doubling to 2 s: between two tries. */
const RETRY_MS = 100
const RETRY_CAP_MS = 2_000
/** Only what belongs to transactions that were committed. */
const READ_COMMITTED = 1
/** The epoch of a fetch that belongs to no session: each request says all it wants. */
const NO_SESSION = -1
const ANY_EPOCH = -1

/** Reads what is wanted, one request at a time from each broker. */
export class Fetcher {
  readonly #parts: FetcherParts
  readonly #asking = new Set<number>()
  readonly #inFlight = new Set<Reading>()
  #isWoken = false
  #isStopped = false
  #failures = 0
  /** Brokers that did not answer when they were last asked; -1 for all of them. */
  readonly #troubled = new Set<number>()

  constructor(parts: FetcherParts) {
    this.#parts = parts
  }

  /** There may be more to read. */
  wake(): void {
    if (this.#isWoken || this.#isStopped) return
    this.#isWoken = true
    setImmediate(() => {
      this.#isWoken = false
      void this.#askAll()
    })
  }

  stop(): void {
    this.#isStopped = true
  }

  async #askAll(): Promise<void> {
    const { client, topics, wanted } = this.#parts
    try {
      const metadata = await client.metadata(topics)
      if (this.#isStopped) return
      this.#trouble(EVERYONE, undefined)
      for (const node of this.#troubled) {
        // Nobody needs it any more: others lead what it led.
        if (!isLeader(metadata, node)) this.#trouble(node, undefined)
      }
      const byNode = new Map<number, Reading[]>()
      for (const reading of wanted()) {
        const node = leaderOf(metadata, reading)
        if (this.#asking.has(node) || this.#inFlight.has(reading)) continue
        const readings = byNode.get(node)
        if (readings === undefined) byNode.set(node, [reading])
        else readings.push(reading)
      }
      for (const [node, readings] of byNode) void this.#ask(metadata, node, readings)
    } catch (error) {
      await this.#failed(EVERYONE, error)
    }
  }

  async #ask(metadata: Metadata, node: number, readings: readonly Reading[]): Promise<void> {
    this.#asking.add(node)
    for (const reading of readings) this.#inFlight.add(reading)
    try {
      const answer = await this.#request(metadata, node, readings)
      await this.#read(metadata, readings, answer)
      this.#failures = 0
      this.#trouble(node, undefined)
    } catch (error) {
      await this.#failed(node, error)
    }
    this.#asking.delete(node)
    for (const reading of readings) this.#inFlight.delete(reading)
    // Not when the handlers have had their turn: the broker prepares the next answer meanwhile.
    void this.#askAll()
  }

  async #request(metadata: Metadata, node: number, readings: readonly Reading[]) {
    const { client } = this.#parts
    if (node < 0) throw new Error('A partition has no leader at the moment.')
    try {
      return await client.ask(
        'Fetch',
        node,
        WAIT_MS,
        1,
        MOST_BYTES,
        READ_COMMITTED,
        0,
        NO_SESSION,
        requestTopics(metadata, readings),
        [],
        '',
      )
    } catch (error) {
      // Some of the partitions: the others were read.
      const { response } = error as { readonly response?: fetchV17.FetchResponse }
      if (response?.responses === undefined || response.errorCode !== 0) throw error
      return response
    }
  }

  async #read(
    metadata: Metadata,
    readings: readonly Reading[],
    { responses }: fetchV17.FetchResponse,
  ): Promise<void> {
    const topicOf = new Map([...metadata.topics].map(([name, { id }]) => [id, name]))
    for (const { topicId, partitions } of responses) {
      const topic = topicOf.get(topicId)
      for (const answer of partitions) {
        const reading = readings.find(
          (one) => one.topic === topic && one.partition === answer.partitionIndex,
        )
        if (reading === undefined) continue
        if (answer.errorCode !== 0) await this.#refused(reading, answer.errorCode)
        else readInto(reading, answer)
      }
    }
  }

  async #refused(reading: Reading, errorCode: number): Promise<void> {
    if (errorCode === OFFSET_OUT_OF_RANGE) return reading.outOfRange()
    // Its leader has moved, or moves right now.
    this.#parts.client.forget()
    await wait(RETRY_MS)
  }

  #trouble(node: number, error: unknown): void {
    if (error !== undefined) this.#troubled.add(node)
    else if (!this.#troubled.delete(node)) return
    const who = node === EVERYONE ? 'the brokers' : `broker ${node}`
    this.#parts.onTrouble(`${who} for ${this.#parts.topics[0]}`, error)
  }

  async #failed(node: number, error: unknown): Promise<void> {
    if (this.#isStopped) return
    this.#trouble(node, error)
    if (!isError(error, 'THROTTLING_QUOTA_EXCEEDED')) this.#parts.client.forget()
    await wait(Math.min(RETRY_CAP_MS, RETRY_MS * 2 ** this.#failures))
    this.#failures += 1
    this.wake()
  }
}

const OFFSET_OUT_OF_RANGE = 1

const wait = (ms: number) =>
  new Promise<void>((resolve) => {
    setTimeout(resolve, ms).unref()
  })

const EVERYONE = -1

function isLeader({ topics }: Metadata, node: number): boolean {
  for (const { partitions } of topics.values()) {
    if (partitions.some(({ leader }) => leader === node)) return true
  }
  return false
}

const leaderOf = (metadata: Metadata, { topic, partition }: TopicPartition) =>
  metadata.topics.get(topic)?.partitions[partition]?.leader ?? -1

function requestTopics(
  metadata: Metadata,
  readings: readonly Reading[],
): fetchV17.FetchRequestTopic[] {
  const byTopic = new Map<string, fetchV17.FetchRequestPartition[]>()
  for (const { topic, partition, position } of readings) {
    const topicId = metadata.topics.get(topic)?.id ?? ''
    const wanted = {
      partition,
      currentLeaderEpoch: ANY_EPOCH,
      fetchOffset: BigInt(position),
      lastFetchedEpoch: ANY_EPOCH,
      partitionMaxBytes: PARTITION_BYTES,
    }
    const partitions = byTopic.get(topicId)
    if (partitions === undefined) byTopic.set(topicId, [wanted])
    else partitions.push(wanted)
  }
  return [...byTopic].map(([topicId, partitions]) => ({ topicId, partitions }))
}

/** When the broker stored it, instead of when the producer made it. */
const IS_STORED_TIME = 0b1000

/** A batch may begin before the position, and a partition may have batches without records for us. */
function readInto(reading: Reading, answer: PartitionAnswer): void {
  const { topic, partition, position } = reading
  const records: KafkaRecord[] = []
  let next = position
  const isAborted = abortedIn(answer)
  for (const batch of answer.records ?? []) {
    const first = Number(batch.firstOffset)
    const last = first + batch.lastOffsetDelta
    if (last >= next) next = last + 1
    if (isAborted(batch) || (batch.attributes & IS_CONTROL) !== 0) continue
    const isStoredTime = (batch.attributes & IS_STORED_TIME) !== 0
    for (const { offsetDelta, timestampDelta, key, value, headers } of batch.records) {
      const offset = first + offsetDelta
      if (offset < position) continue
      const timestamp = isStoredTime ? batch.maxTimestamp : batch.firstTimestamp + timestampDelta
      records.push({
        topic,
        partition,
        offset,
        timestamp: Number(timestamp),
        key: key ?? null,
        value: value ?? null,
        headers: headers as unknown as KafkaRecord['headers'],
      })
    }
  }
  reading.take(records, next, Number(answer.lastStableOffset))
}

/** An abort marker says 0, a commit marker 1, after two bytes of version. */
const isAbortMarker = ({ records }: Batch) => records[0]?.key?.readInt16BE(2) === 0

/**
 * Which batches belong to aborted transactions. The broker names those that may be in the answer, by
 * their first offset; they end at their marker, which may be in a later answer.
 */
function abortedIn({ abortedTransactions }: PartitionAnswer): (batch: Batch) => boolean {
  const ahead = [...(abortedTransactions ?? [])].sort((a, b) =>
    a.firstOffset < b.firstOffset ? -1 : 1,
  )
  const aborted = new Set<bigint>()
  return (batch) => {
    const { firstOffset, lastOffsetDelta, producerId, attributes } = batch
    while (
      ahead[0] !== undefined &&
      ahead[0].firstOffset <= firstOffset + BigInt(lastOffsetDelta)
    ) {
      aborted.add((ahead.shift() as (typeof ahead)[number]).producerId)
    }
    if ((attributes & IS_TRANSACTIONAL) === 0) return false
    const isIt = aborted.has(producerId)
    if ((attributes & IS_CONTROL) !== 0 && isAbortMarker(batch)) aborted.delete(producerId)
    return isIt
  }
}
