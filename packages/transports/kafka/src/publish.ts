import type { BaseOptions, produceV11 } from '@platformatic/kafka'
import { RedriveError } from '@redrive/core'
import { withTimeout } from '@redrive/runtime/internal'
import type { Copy } from './delivery.ts'
import {
  closing,
  forgetIfOutdated,
  type KafkaProducer,
  type Message,
  producerOf,
} from './producer.ts'
import { hasRefusal, refusalIn } from './protocol/refusal.ts'
import { nameOf, type TopicPartition } from './protocol/topic-partition.ts'

/** 500 records per request, and 512 KB per partition: half of what a broker accepts by default. */
const BATCH_RECORDS = 500
const BATCH_BYTES = 524_288
interface PendingRecord {
  /** Name of the topic and partition. */
  readonly to: string
  readonly message: Message
  readonly bytes: number
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}

export interface PublisherOptions {
  readonly client: BaseOptions
  readonly confirmTimeoutMs: number
  /** Whether a record that the broker rejects as too large is sent again with gzip. */
  readonly canCompress?: boolean
}

/** The waiting records of one broker, and whether a request to it is in flight. */
interface BrokerQueue {
  waiting: PendingRecord[]
  isSending: boolean
  /** Number of records per partition that wait or are in flight. */
  readonly unsettled: Map<string, number>
}

/**
 * Produces with an idempotent producer, and waits for the acknowledgement of all replicas in sync. It sends
 * one request at a time to each broker, with all records that arrived since the last one. A rejected partition
 * does not affect the others.
 */
export class Publisher {
  readonly #options: BaseOptions
  readonly #confirmTimeoutMs: number
  readonly #canCompress: boolean
  readonly #queues = new Map<number, BrokerQueue>()
  #producer: KafkaProducer | undefined
  /** Requests in flight, by producer. */
  readonly #users = new Map<KafkaProducer, number>()
  readonly #closing = new Set<Promise<void>>()
  #isClosed = false

  constructor({ client, confirmTimeoutMs, canCompress = false }: PublisherOptions) {
    this.#options = client
    this.#confirmTimeoutMs = confirmTimeoutMs
    this.#canCompress = canCompress
  }

  /** Sends a copy. Resolves when the broker has stored it. */
  send(topicPartition: TopicPartition, copy: Copy): Promise<void> {
    const to = nameOf(topicPartition)
    const queue = this.#queueOf(topicPartition, to)
    queue.unsettled.set(to, (queue.unsettled.get(to) ?? 0) + 1)
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    queue.waiting.push({ to, ...messageOf(topicPartition, copy), resolve, reject })
    if (!queue.isSending) {
      queue.isSending = true
      // Records sent in this turn of the event loop join the request.
      setImmediate(() => void this.#sendAll(queue))
    }
    return promise
  }

  /**
   * Returns the queue that already has records of the partition, even if its leader has changed. Two requests
   * for one partition may arrive out of order, and the broker then rejects one for its sequence number.
   */
  #queueOf(topicPartition: TopicPartition, to: string): BrokerQueue {
    for (const queue of this.#queues.values()) if (queue.unsettled.has(to)) return queue
    const leader = this.#leaderOf(topicPartition)
    const queue = this.#queues.get(leader) ?? {
      waiting: [],
      isSending: false,
      unsettled: new Map(),
    }
    this.#queues.set(leader, queue)
    return queue
  }

  /** Returns the leader if it is known. The client library finds the right broker in any case. */
  #leaderOf({ topic, partition }: TopicPartition): number {
    // Unknown for a new producer: its first request is sent alone, and initialises it.
    const topics = this.#producer?.currentMetadata?.topics
    return topics?.get(topic)?.partitions[partition]?.leader ?? NO_LEADER
  }

  /** Waits for the acknowledgement; rejects after the timeout. The acknowledgement may still arrive later. */
  async inTime<T>(proof: Promise<T>): Promise<T> {
    return withTimeout(proof, this.#confirmTimeoutMs, () => {
      throw unconfirmed(this.#confirmTimeoutMs)
    })
  }

  async #sendAll(queue: BrokerQueue): Promise<void> {
    while (queue.waiting.length > 0) {
      const batch = queue.waiting.splice(0, batchIn(queue.waiting))
      await this.#sendBatch(batch)
      settle(queue, batch)
    }
    queue.isSending = false
  }

  async #sendBatch(
    batch: readonly PendingRecord[],
    compression: 'none' | 'gzip' = 'none',
  ): Promise<void> {
    const producer = this.#current()
    this.#users.set(producer, (this.#users.get(producer) ?? 0) + 1)
    try {
      const messages = batch.map(({ message }) => message)
      forgetIfOutdated(producer, messages)
      await producer.send({ messages, compression })
      for (const { resolve } of batch) resolve()
    } catch (error) {
      // It is unknown which records the broker stored, so this producer's sequence numbers are not used again.
      this.#retire(producer)
      const isStored = storedIn(error)
      const left = batch.filter(({ to }) => !isStored(to))
      for (const one of batch) if (!left.includes(one)) one.resolve()
      // The broker rejects one of them: each is sent alone, so that it does not block the others.
      const canSplit = left.length > 1 && !this.#isClosed && hasRefusal(error)
      if (canSplit) for (const one of left) await this.#sendBatch([one])
      else if (compression === 'none' && this.#mayFit(error)) await this.#sendBatch(left, 'gzip')
      else for (const { reject } of left) reject(error)
    } finally {
      this.#released(producer)
    }
  }

  /** Whether the rejected record may fit when it is compressed. */
  #mayFit(error: unknown): boolean {
    return this.#canCompress && !this.#isClosed && refusalIn(error)?.isTooLarge === true
  }

  #current(): KafkaProducer {
    this.#producer ??= producerOf(this.#options)
    return this.#producer
  }

  /** Replaces a producer. It is closed when its other requests have ended: they would be unknown otherwise. */
  #retire(producer: KafkaProducer): void {
    if (this.#producer === producer) this.#producer = undefined
  }

  #released(producer: KafkaProducer): void {
    const users = (this.#users.get(producer) ?? 1) - 1
    if (users > 0) this.#users.set(producer, users)
    else this.#users.delete(producer)
    if (users === 0 && this.#producer !== producer) this.#close(producer)
  }

  #close(producer: KafkaProducer): void {
    const closed = closing(producer).finally(() => this.#closing.delete(closed))
    this.#closing.add(closed)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    for (const queue of this.#queues.values()) {
      const left = queue.waiting.splice(0)
      for (const { reject } of left)
        reject(new Error('The producer was closed before the record was sent.'))
      settle(queue, left)
    }
    const producers = new Set(this.#users.keys())
    if (this.#producer !== undefined) producers.add(this.#producer)
    for (const producer of producers) this.#close(producer)
    this.#producer = undefined
    await Promise.all(this.#closing)
  }
}

const NO_LEADER = -1

function settle({ unsettled }: BrokerQueue, batch: readonly PendingRecord[]): void {
  for (const { to } of batch) {
    const left = (unsettled.get(to) ?? 0) - 1
    if (left > 0) unsettled.set(to, left)
    else unsettled.delete(to)
  }
}

/** Returns a function that checks whether a partition was stored, for a response that rejects only some partitions. */
function storedIn(error: unknown): (topicPartition: string) => boolean {
  const stored = new Set<string>()
  for (const { responses } of answersIn(error)) {
    for (const { name: topic, partitionResponses } of responses) {
      for (const { index: partition, errorCode } of partitionResponses) {
        const topicPartition = nameOf({ topic, partition })
        // The last response counts: the client library may have sent the request more than once.
        if (errorCode === 0) stored.add(topicPartition)
        else stored.delete(topicPartition)
      }
    }
  }
  return (topicPartition) => stored.has(topicPartition)
}

function answersIn(error: unknown): readonly ProduceAnswer[] {
  const { response, errors = [] } = error as {
    readonly response?: ProduceAnswer
    readonly errors?: readonly unknown[]
  }
  const own = response?.responses === undefined ? [] : [response]
  return [...own, ...errors.flatMap(answersIn)]
}

type ProduceAnswer = produceV11.ProduceResponse

export function messageOf(
  { topic, partition }: TopicPartition,
  { key, value, headers }: Copy,
): { readonly message: Message; readonly bytes: number } {
  // The keys are buffers, compared by identity, so that repeated header names are all kept.
  const entries = new Map(headers as readonly [Buffer, Buffer][])
  const message = { topic, partition, key, value, headers: entries } as unknown as Message
  const bytes = (key?.length ?? 0) + (value?.length ?? 0) + PER_RECORD + headers.length * PER_HEADER
  return { message, bytes }
}

/** Estimated bytes per record and header. The failure history has a separate limit. */
const PER_RECORD = 100
const PER_HEADER = 200

/** Returns how many records fit into one request: a broker limits the bytes per partition. */
function batchIn(waiting: readonly PendingRecord[]): number {
  const bytesTo = new Map<string, number>()
  let count = 0
  for (const { to, bytes } of waiting) {
    const all = (bytesTo.get(to) ?? 0) + bytes
    if (count > 0 && (count >= BATCH_RECORDS || all > BATCH_BYTES)) break
    bytesTo.set(to, all)
    count += 1
  }
  return count
}

const unconfirmed = (ms: number) =>
  new RedriveError(
    'OUTCOME_UNKNOWN',
    `Kafka did not acknowledge a record within ${ms} ms, so it may or may not be stored. Redrive writes it again. Check the brokers if this repeats.`,
  )
