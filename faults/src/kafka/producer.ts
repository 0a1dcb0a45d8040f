import { setTimeout as after } from 'node:timers/promises'
import { findErrorBy, ProduceAcks, Producer } from '@platformatic/kafka'
import type { HistoryWriter } from '../evidence/history.ts'
import { bodyOf, type PlannedMessage } from '../evidence/message.ts'

/** A message with its key. Without a key, the partitions are used in turn. */
export interface PlannedRecord extends PlannedMessage {
  readonly key?: string
}

export interface ProducerOptions {
  readonly brokers: readonly string[]
  readonly queue: string
  readonly partitions: number
  readonly messages: readonly PlannedRecord[]
  readonly ratePerSecond: number
  readonly history: HistoryWriter
  /** Returns false while consumers have a large backlog. More messages would only wait. */
  readonly hasRoom: () => boolean
}

const TICK_MS = 20
/** 200 in one request: the number left unknown by a request without a response. */
const BATCH = 200
/** 500 ms after an error: the partition currently has no leader. */
const BACK_OFF_MS = 500
const ANSWER_MS = 5_000

/** Messages that wait for one partition. */
interface Line {
  readonly partition: number
  waiting: PlannedRecord[]
  isSending: boolean
  /** Waiting messages that the broker rejected before. */
  readonly refused: Set<string>
}

/**
 * Produces every message once, to all replicas, and records the broker's response. Each partition
 * gets one request at a time, so the log has the order of sending. Rejected messages are sent
 * again. Messages without a response are not, because the checker must find out their outcome.
 */
export async function produce(options: ProducerOptions): Promise<void> {
  const { messages, ratePerSecond, partitions, brokers } = options
  const producer = new Producer<Buffer, Buffer, string, string>({
    clientId: 'faults-producer',
    bootstrapBrokers: [...brokers],
    retries: 0,
    requestTimeout: ANSWER_MS,
    autocreateTopics: false,
    serializers: { headerKey: asBytes, headerValue: asBytes } as never,
  })
  const lines = Array.from(
    { length: partitions },
    (_, partition): Line => ({
      partition,
      waiting: [],
      isSending: false,
      refused: new Set(),
    }),
  )
  let [next, due] = [0, 0]
  let lookedAt = performance.now()
  const isBusy = () => lines.some(({ waiting, isSending }) => isSending || waiting.length > 0)
  while (next < messages.length || isBusy()) {
    const now = performance.now()
    if (options.hasRoom()) due += ((now - lookedAt) / 1_000) * ratePerSecond
    lookedAt = now
    for (; next < Math.min(messages.length, due); next++) {
      const message = messages[next] as PlannedRecord
      lines[partitionOf(message, next) % partitions]?.waiting.push(message)
    }
    for (const line of lines) {
      if (!line.isSending && line.waiting.length > 0) void sendLine(producer, line, options)
    }
    await after(TICK_MS)
  }
  await producer.close(true)
}

const asBytes = (text: string | undefined) => (text === undefined ? undefined : Buffer.from(text))

/** Returns the partition; any function of the key works. */
function partitionOf({ key }: PlannedRecord, index: number): number {
  if (key === undefined) return index
  let hash = 7
  for (const letter of key) hash = (hash * 31 + (letter.codePointAt(0) ?? 0)) % 1_000_003
  return hash
}

type KafkaProducer = Producer<Buffer, Buffer, string, string>

async function sendLine(
  producer: KafkaProducer,
  line: Line,
  { queue, history }: ProducerOptions,
): Promise<void> {
  line.isSending = true
  const batch = line.waiting.splice(0, batchIn(line.waiting))
  for (const { id, kind } of batch) {
    if (!line.refused.delete(id)) history.write({ what: 'attempted', id, kind })
  }
  try {
    await producer.send({
      // Set in each request, because the client library ignores the constructor's value.
      acks: ProduceAcks.ALL,
      messages: batch.map((message) => ({
        topic: queue,
        partition: line.partition,
        ...(message.key === undefined ? {} : { key: Buffer.from(message.key) }),
        value: bodyOf(message),
        headers: { 'redrive-key': message.id, 'content-type': 'application/json' },
      })),
    })
    for (const { id } of batch) history.write({ what: 'acknowledged', id })
  } catch (error) {
    // Otherwise it is unknown whether they are stored.
    if (isRefused(error)) {
      for (const { id } of batch) line.refused.add(id)
      line.waiting.unshift(...batch)
    }
    await after(BACK_OFF_MS)
  }
  line.isSending = false
}

/** Returns how many messages fit into one request: a large one is sent alone. */
function batchIn(waiting: readonly PlannedRecord[]): number {
  const large = waiting.findIndex(({ kind }) => kind === 'large')
  if (large === -1) return BATCH
  return large === 0 ? 1 : Math.min(BATCH, large)
}

/** Errors after which nothing is stored: the partition has no leader here, or too few replicas. */
const REFUSALS = [
  'UNKNOWN_TOPIC_OR_PARTITION',
  'LEADER_NOT_AVAILABLE',
  'NOT_LEADER_OR_FOLLOWER',
  'NOT_ENOUGH_REPLICAS',
]

function isRefused(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  // The client library's message for an unknown topic. It has sent nothing.
  if (error.message.startsWith('Unknown topic')) return true
  return REFUSALS.some((id) => findErrorBy(error, 'apiId', id) !== null)
}
