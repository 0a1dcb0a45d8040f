import type { fetchV17 } from '@platformatic/kafka'
import { type Client, isError, isMissing, type Metadata } from './client.ts'
import type { KafkaRecord } from '../delivery.ts'
import { fetchedRecords } from './fetched-records.ts'
import type { TopicPartition } from './topic-partition.ts'

/** A partition that is read, starting at a position. */
export interface Reading extends TopicPartition {
  /** Id of the topic that the position belongs to. Undefined: of the current topic. */
  readonly topicId?: string | undefined
  /** The next offset to fetch. */
  position: number
  /** Accepts fetched records, in order. `next` is the next position, `end` the current end of the log. */
  take(records: readonly KafkaRecord[], next: number, end: number): void
  /** Called when the position is before the start or after the end of the log. */
  outOfRange(): Promise<void>
  /** Called when the topic was deleted and created again. */
  recreated?(): Promise<void>
}

export interface FetcherDeps {
  readonly client: Client
  readonly topics: readonly string[]
  /** Returns the partitions to read now. */
  readonly wanted: () => Iterable<Reading>
  readonly onResult: OnResult
  readonly onMissing: OnMissing
}

/** Reports that a topic does not exist, or that it exists again. */
export type OnMissing = (topic: string, isMissing: boolean) => void

/** Reports that a broker or coordinator does not answer or, without an error, that it answers again. */
export type OnResult = (where: string, error: unknown) => void

/** 250 ms: the maximum wait of a fetch without data, and the maximum delay for a partition that was full. */
const WAIT_MS = 250
/** 8 MB per response, 1 MB per partition: records read ahead use memory. */
const MAX_BYTES = 8_388_608
const MAX_PARTITION_BYTES = 1_048_576
/** 100 ms between two attempts, doubled up to 2 s. */
const RETRY_MS = 100
const RETRY_CAP_MS = 2_000
/** 1 s between two checks for a missing topic: it is read soon after it is created again. */
const MISSING_MS = 1_000
/** Isolation level: only records of committed transactions. */
const READ_COMMITTED = 1
/** The epoch of a fetch without a session: each request lists all partitions. */
const NO_SESSION = -1
const ANY_EPOCH = -1

/** Reads the wanted partitions, with one request at a time per broker. */
export class Fetcher {
  readonly #deps: FetcherDeps
  readonly #fetchingFrom = new Set<number>()
  readonly #inFlight = new Set<Reading>()
  #isWoken = false
  #isStopped = false
  #failures = 0
  /** Brokers whose last request failed; -1 for all of them. */
  readonly #failedBrokers = new Set<number>()
  readonly #missing = new Set<string>()
  #checkingMissing: NodeJS.Timeout | undefined

  constructor(deps: FetcherDeps) {
    this.#deps = deps
  }

  /** Starts reading, because more partitions may be wanted. */
  wake(): void {
    if (this.#isWoken || this.#isStopped) return
    this.#isWoken = true
    setImmediate(() => {
      this.#isWoken = false
      void this.#fetchAll()
    })
  }

  stop(): void {
    this.#isStopped = true
    clearTimeout(this.#checkingMissing)
  }

  async #fetchAll(): Promise<void> {
    const { client, topics, wanted } = this.#deps
    try {
      const metadata = await client.metadataWithMissing(topics)
      if (this.#isStopped) return
      this.#reportState(ALL_BROKERS, undefined)
      this.#reportMissing(metadata)
      for (const node of this.#failedBrokers) {
        // Other brokers lead its partitions now, so its state is not relevant.
        if (!isLeader(metadata, node)) this.#reportState(node, undefined)
      }
      const byNode = new Map<number, Reading[]>()
      for (const reading of wanted()) {
        if (isMissing(metadata, reading.topic)) continue
        const node = leaderOf(metadata, reading)
        if (this.#fetchingFrom.has(node) || this.#inFlight.has(reading)) continue
        if (isRecreated(metadata, reading)) {
          // The new topic may have fewer partitions. Then the next rebalance removes this one.
          if (node >= 0) void this.#recreated(reading)
          continue
        }
        const readings = byNode.get(node)
        if (readings === undefined) byNode.set(node, [reading])
        else readings.push(reading)
      }
      for (const [node, readings] of byNode) void this.#fetch(metadata, node, readings)
    } catch (error) {
      await this.#failed(ALL_BROKERS, error)
    }
  }

  async #fetch(metadata: Metadata, node: number, readings: readonly Reading[]): Promise<void> {
    this.#fetchingFrom.add(node)
    for (const reading of readings) this.#inFlight.add(reading)
    try {
      const answer = await this.#request(metadata, node, readings)
      await this.#read(metadata, readings, answer)
      this.#failures = 0
      this.#reportState(node, undefined)
    } catch (error) {
      await this.#failed(node, error)
    }
    this.#fetchingFrom.delete(node)
    for (const reading of readings) this.#inFlight.delete(reading)
    // The next request is sent before the handlers run, so that the broker prepares its answer in that time.
    void this.#fetchAll()
  }

  async #recreated(reading: Reading): Promise<void> {
    this.#inFlight.add(reading)
    // The metadata here may be older than the id of the reading.
    this.#deps.client.forget()
    try {
      await reading.recreated?.()
    } catch (error) {
      await this.#failed(ALL_BROKERS, error)
    }
    await wait(RETRY_MS)
    this.#inFlight.delete(reading)
    this.wake()
  }

  async #request(metadata: Metadata, node: number, readings: readonly Reading[]) {
    const { client } = this.#deps
    if (node < 0) throw new Error('A partition currently has no leader.')
    try {
      return await client.ask(
        'Fetch',
        node,
        WAIT_MS,
        1,
        MAX_BYTES,
        READ_COMMITTED,
        0,
        NO_SESSION,
        requestTopics(metadata, readings),
        [],
        '',
      )
    } catch (error) {
      // Only some partitions failed; the response contains the others.
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
    for (const { topicId, partitions } of responses) {
      for (const answer of partitions) {
        const reading = readings.find(
          (one) => idOf(metadata, one) === topicId && one.partition === answer.partitionIndex,
        )
        if (reading === undefined) continue
        if (answer.errorCode !== 0) await this.#refused(reading, answer.errorCode)
        else {
          const { records, next } = fetchedRecords(reading, answer)
          reading.take(records, next, Number(answer.lastStableOffset))
        }
      }
    }
  }

  async #refused(reading: Reading, errorCode: number): Promise<void> {
    if (errorCode === OFFSET_OUT_OF_RANGE) return reading.outOfRange()
    // The leader has changed or is changing.
    this.#deps.client.forget()
    await wait(RETRY_MS)
  }

  /** Reports which topics are missing since the last call. While one is, the metadata is read again every second. */
  #reportMissing(metadata: Metadata): void {
    const { client, topics, onMissing } = this.#deps
    for (const topic of topics) {
      const isGone = isMissing(metadata, topic)
      if (isGone === this.#missing.has(topic)) continue
      if (isGone) this.#missing.add(topic)
      else this.#missing.delete(topic)
      onMissing(topic, isGone)
    }
    if (this.#missing.size === 0 || this.#isStopped) return
    this.#checkingMissing ??= setTimeout(() => {
      this.#checkingMissing = undefined
      client.forget()
      this.wake()
    }, MISSING_MS).unref()
  }

  #reportState(node: number, error: unknown): void {
    if (error !== undefined) this.#failedBrokers.add(node)
    else if (!this.#failedBrokers.delete(node)) return
    const where = node === ALL_BROKERS ? 'the brokers' : `broker ${node}`
    this.#deps.onResult(`${where} for ${this.#deps.topics[0]}`, error)
  }

  async #failed(node: number, error: unknown): Promise<void> {
    if (this.#isStopped) return
    this.#reportState(node, error)
    if (!isError(error, 'THROTTLING_QUOTA_EXCEEDED')) this.#deps.client.forget()
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

const ALL_BROKERS = -1

function isLeader({ topics }: Metadata, node: number): boolean {
  for (const { partitions } of topics.values()) {
    if (partitions.some(({ leader }) => leader === node)) return true
  }
  return false
}

const leaderOf = (metadata: Metadata, { topic, partition }: TopicPartition) =>
  metadata.topics.get(topic)?.partitions[partition]?.leader ?? -1

/** Returns the id of the topic to read. It is not the current id when the topic was created again since. */
const idOf = ({ topics }: Metadata, { topic, topicId }: Reading): string =>
  topicId ?? topics.get(topic)?.id ?? ''

const isRecreated = ({ topics }: Metadata, { topic, topicId }: Reading): boolean =>
  topicId !== undefined && topics.has(topic) && topics.get(topic)?.id !== topicId

function requestTopics(
  metadata: Metadata,
  readings: readonly Reading[],
): fetchV17.FetchRequestTopic[] {
  const byTopic = new Map<string, fetchV17.FetchRequestPartition[]>()
  for (const reading of readings) {
    const { partition, position } = reading
    const topicId = idOf(metadata, reading)
    const wanted = {
      partition,
      currentLeaderEpoch: ANY_EPOCH,
      fetchOffset: BigInt(position),
      lastFetchedEpoch: ANY_EPOCH,
      partitionMaxBytes: MAX_PARTITION_BYTES,
    }
    const partitions = byTopic.get(topicId)
    if (partitions === undefined) byTopic.set(topicId, [wanted])
    else partitions.push(wanted)
  }
  return [...byTopic].map(([topicId, partitions]) => ({ topicId, partitions }))
}
