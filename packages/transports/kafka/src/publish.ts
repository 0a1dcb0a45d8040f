import {
  type BaseOptions,
  type CallbackWithPromise,
  kOptions,
  type MessageToProduce,
  type ProduceOptions,
  Producer,
  type ProducerInfo,
  type produceV11,
} from '@platformatic/kafka'
import { RedriveError } from '@redrive/core'
import { withTimeout } from '@redrive/runtime'
import { isError, missingNoBroker } from './client.ts'
import type { Copy } from './headers.ts'
import { nameOf, type TopicPartition } from './topic-partition.ts'

/** 500 records in one request, 512 KB for one partition: half of what a broker takes unless it was told otherwise. */
const BATCH_RECORDS = 500
const BATCH_BYTES = 524_288
/** Tries of one batch. The broker recognises a repetition, so none of them makes a second copy. */
const RETRIES = 3
const RETRY_MS = 200

export type Message = MessageToProduce<Buffer, Buffer, Buffer, Buffer>
export type KafkaProducer = Producer<Buffer, Buffer, Buffer, Buffer>

interface Pending {
  /** Topic and partition. */
  readonly to: string
  readonly message: Message
  readonly bytes: number
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}

/** What waits for one broker, and whether something is on its way to it. */
interface Line {
  waiting: Pending[]
  isSending: boolean
  /** How much of each partition waits or is on its way. */
  readonly unsettled: Map<string, number>
}

/**
 * Produces with proof: acknowledged by all replicas in sync, idempotent. One request at a time to each
 * broker, which carries all that has come together in the meantime; what it refuses for one partition
 * does not touch the others.
 */
export class Publisher {
  readonly #options: BaseOptions
  readonly #confirmTimeoutMs: number
  readonly #lines = new Map<number, Line>()
  #producer: KafkaProducer | undefined
  readonly #retired = new Set<Promise<void>>()

  constructor(options: BaseOptions, confirmTimeoutMs: number) {
    this.#options = options
    this.#confirmTimeoutMs = confirmTimeoutMs
  }

  /** Resolves when the broker has stored it. */
  send(place: TopicPartition, copy: Copy): Promise<void> {
    const to = nameOf(place)
    const line = this.#lineOf(place, to)
    line.unsettled.set(to, (line.unsettled.get(to) ?? 0) + 1)
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    line.waiting.push({ to, ...messageOf(place, copy), resolve, reject })
    if (!line.isSending) {
      line.isSending = true
      // What comes in this moment goes along.
      setImmediate(() => void this.#sendAll(line))
    }
    return promise
  }

  /**
   * Where the partition has something on its way already, whoever leads it by now: two requests for one
   * partition may overtake each other, and the broker then refuses the second for its number.
   */
  #lineOf(place: TopicPartition, to: string): Line {
    for (const line of this.#lines.values()) if (line.unsettled.has(to)) return line
    const leader = this.#leaderOf(place)
    const line = this.#lines.get(leader) ?? { waiting: [], isSending: false, unsettled: new Map() }
    this.#lines.set(leader, line)
    return line
  }

  /** As far as it is known: the client library asks the right one in any case. */
  #leaderOf({ topic, partition }: TopicPartition): number {
    const topics = this.#producer?.currentMetadata?.topics
    return topics?.get(topic)?.partitions[partition]?.leader ?? NOBODY
  }

  /** The proof, if it comes in time; it may still come later. */
  async inTime<T>(proof: Promise<T>): Promise<T> {
    return withTimeout(proof, this.#confirmTimeoutMs, () => {
      throw unconfirmed(this.#confirmTimeoutMs)
    })
  }

  async #sendAll(line: Line): Promise<void> {
    while (line.waiting.length > 0) {
      const batch = line.waiting.splice(0, batchIn(line.waiting))
      await this.#sendBatch(batch)
      settle(line, batch)
    }
    line.isSending = false
  }

  async #sendBatch(batch: readonly Pending[]): Promise<void> {
    const producer = this.#current()
    try {
      await producer.send({ messages: batch.map(({ message }) => message) })
      for (const { resolve } of batch) resolve()
    } catch (error) {
      // Nobody knows what the broker has of it, so nothing is built on this producer's numbering.
      this.#retire(producer)
      const isStored = storedIn(error)
      const left = batch.filter(({ to }) => !isStored(to))
      for (const one of batch) if (!left.includes(one)) one.resolve()
      // One of them may be too large: each is sent alone, so that it does not hold up the others.
      const isDivisible = left.length > 1 && isError(error, ...TOO_LARGE)
      if (!isDivisible) for (const { reject } of left) reject(error)
      else for (const one of left) await this.#sendBatch([one])
    }
  }

  #current(): KafkaProducer {
    this.#producer ??= producerOf(this.#options)
    return this.#producer
  }

  #retire(producer: KafkaProducer): void {
    if (this.#producer === producer) this.#producer = undefined
    const closed = closing(producer).finally(() => this.#retired.delete(closed))
    this.#retired.add(closed)
  }

  async close(): Promise<void> {
    for (const line of this.#lines.values()) {
      const left = line.waiting.splice(0)
      for (const { reject } of left) reject(new Error('The producer is closed.'))
      settle(line, left)
    }
    if (this.#producer !== undefined) this.#retire(this.#producer)
    await Promise.all(this.#retired)
  }
}

const NOBODY = -1

function settle({ unsettled }: Line, batch: readonly Pending[]): void {
  for (const { to } of batch) {
    const left = (unsettled.get(to) ?? 0) - 1
    if (left > 0) unsettled.set(to, left)
    else unsettled.delete(to)
  }
}

/** Which partitions a broker said it has stored, in an answer that refuses others. */
function storedIn(error: unknown): (place: string) => boolean {
  const stored = new Set<string>()
  for (const { responses } of answersIn(error)) {
    for (const { name: topic, partitionResponses } of responses) {
      for (const { index: partition, errorCode } of partitionResponses) {
        const place = nameOf({ topic, partition })
        // The last answer counts: the client library may have asked more than once.
        if (errorCode === 0) stored.add(place)
        else stored.delete(place)
      }
    }
  }
  return (place) => stored.has(place)
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

export function producerOf(
  options: BaseOptions,
  {
    retries = RETRIES,
    ...own
  }: { readonly transactionalId?: string; readonly retries?: number } = {},
): KafkaProducer {
  const created: KafkaProducer = new Producer({
    ...options,
    ...own,
    idempotent: true,
    autocreateTopics: false,
    retryDelay: RETRY_MS,
  })
  const producer = missingNoBroker(created)
  // It would repeat for ever, and tell nobody what was stored meanwhile.
  producer[kOptions].retries = retries
  // We have no number yet. It would say 0, which is somebody's, and be fenced under a name that is known.
  producer[kOptions].producerId = -1n
  producer[kOptions].producerEpoch = -1
  return own.transactionalId === undefined ? numberedOnce(producer) : producer
}

const OUT_OF_NUMBER =
  'Kafka refused a request for the number of its records, so nobody knows which of them it has. They are sent again by a new producer.'

/**
 * By the numbers of a producer a broker recognises a repetition. When it finds a gap in them, the client
 * library takes new ones and sends everything again, also what is stored, and tells nobody. Here that is
 * an error like others: whoever sends decides, with a producer that is new.
 */
function numberedOnce(producer: KafkaProducer): KafkaProducer {
  const initialise = producer.initIdempotentProducer.bind(producer)
  let isNumbered = false
  producer.initIdempotentProducer = ((
    options: ProduceOptions<Buffer, Buffer, Buffer, Buffer>,
    callback: CallbackWithPromise<ProducerInfo>,
  ) => {
    if (isNumbered) return callback(new Error(OUT_OF_NUMBER))
    initialise(options, (error, info) => {
      isNumbered ||= error === null
      callback(error, info)
    })
  }) as KafkaProducer['initIdempotentProducer']
  return producer
}

/** A connection that is gone needs no goodbye. */
export const closing = (producer: KafkaProducer): Promise<void> =>
  producer.close(true).catch(() => undefined)

const TOO_LARGE = ['MESSAGE_TOO_LARGE', 'RECORD_LIST_TOO_LARGE']

export function messageOf(
  { topic, partition }: TopicPartition,
  { key, value, headers }: Copy,
): { readonly message: Message; readonly bytes: number } {
  // By identity of their bytes: a name may occur more than once, and none is lost.
  const entries = new Map(headers as readonly [Buffer, Buffer][])
  const message = { topic, partition, key, value, headers: entries } as unknown as Message
  const bytes = (key?.length ?? 0) + (value?.length ?? 0) + PER_RECORD + headers.length * PER_HEADER
  return { message, bytes }
}

/** Roughly; history has its own bound. */
const PER_RECORD = 100
const PER_HEADER = 200

/** As many as fit: a broker bounds what one partition gets at once. */
function batchIn(waiting: readonly Pending[]): number {
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
  new RedriveError('OUTCOME_UNKNOWN', `Kafka has not acknowledged a copy within ${ms} ms.`)
