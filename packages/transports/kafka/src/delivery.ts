import {
  type Delivery,
  encodeHeaders,
  type FailureCycle,
  HEADER_PREFIX,
  nextCycle,
} from '@redrive/core'
import type { DrainedDeadLetter } from '@redrive/runtime'
import type { EventHeaderTable, KafkaHeaderTable } from './header-tables.ts'
import type { TopicPartition } from './protocol/topic-partition.ts'
import { groupIn, retryTopic, tierFor } from './topology.ts'

/** A record as the broker stores it. */
export interface KafkaRecord {
  readonly topic: string
  readonly partition: number
  readonly offset: number
  /** Time when the producer created it or the broker stored it, depending on the topic; epoch ms. */
  readonly timestamp: number
  readonly key: Buffer | null
  /** The value; null for a tombstone, which deletes its key from a compacted topic. */
  readonly value: Buffer | null
  readonly headers: readonly Header[]
}

/** A header with name and value as bytes; a name may occur more than once. */
export type Header = readonly [name: Buffer, value: Buffer | null]

/** A delivery with the original record. */
export interface KafkaDelivery extends Delivery {
  readonly raw: KafkaRecord
}

export type Headers = Readonly<Record<string, unknown>>

/** Returns the position of a record, which is unique in the cluster and the same for each redelivery. */
export const positionOf = ({
  topic,
  partition,
  offset,
}: Pick<KafkaRecord, 'topic' | 'partition' | 'offset'>): string => `${topic}/${partition}/${offset}`

/** Returns the lane of a record: its key. Records without a key have no order. */
export const laneOf = ({ key }: KafkaRecord): string | undefined =>
  key === null ? undefined : key.toString('latin1')

export function text(headers: Headers, name: keyof EventHeaderTable): string | undefined {
  const value = headers[name]
  return typeof value === 'string' ? value : undefined
}

/** Returns the key of a CloudEvent. Its source and id identify duplicates of the same event. */
export function cloudEventKey(headers: Headers): string | undefined {
  const id = text(headers, 'ce_id')
  return id === undefined ? undefined : `${text(headers, 'ce_source') ?? ''}#${id}`
}

const utf8 = new TextDecoder('utf-8', { fatal: true })

/** Returns the headers by name: text if it is valid UTF-8, otherwise bytes; a list if a name occurs more than once. */
export function readable(headers: readonly Header[]): Headers {
  const found = Object.create(null) as Record<string, unknown>
  for (const [name, value] of headers) {
    const headerName = name.toString()
    const decoded = value === null ? null : textOrBytes(value)
    const before = found[headerName]
    if (before === undefined || headerName.startsWith(HEADER_PREFIX)) found[headerName] = decoded
    else
      found[headerName] = Array.isArray(before)
        ? [...(before as unknown[]), decoded]
        : [before, decoded]
  }
  return found
}

function textOrBytes(value: Buffer): string | Buffer {
  try {
    return utf8.decode(value)
  } catch {
    return value
  }
}

// ---- copies -----------------------------------------------------------------------------------

const ORDER = 'redrive-order' satisfies keyof KafkaHeaderTable

/** The content of a copy. Only headers of Redrive are added to the original. */
export interface Copy {
  readonly key: Buffer | null
  readonly value: Buffer | null
  readonly headers: readonly Header[]
}

export interface CopyOptions {
  readonly cycle: FailureCycle
  readonly reason: string
  readonly handler?: string | undefined
  readonly stack?: string | undefined
  readonly order: 'none' | 'lane'
  readonly budgetBytes: number
}

/** Returns a copy of the record with the updated failure history. */
export function copyOf(
  delivery: KafkaDelivery,
  { cycle, reason, handler, stack, order, budgetBytes }: CopyOptions,
): { readonly copy: Copy; readonly truncated: number } {
  const { id, key, source, replayId, replaces, raw } = delivery
  const state = { id, key, source, replayId, replaces, cycle, reason, handler, stack }
  const { headers, truncated } = encodeHeaders(state, budgetBytes)
  const own = encodeAsBytes(order === 'lane' ? { ...headers, [ORDER]: order } : headers)
  const { key: keyBytes, value } = raw
  return {
    copy: { key: keyBytes, value, headers: [...producerHeaders(raw.headers), ...own] },
    truncated,
  }
}

const ORIGINAL = 'redrive-original' satisfies keyof KafkaHeaderTable

/** Returns a copy that has only the headers of Redrive, and the position of the original instead of its content. */
export function withoutContent({ headers }: Copy, original: KafkaRecord): Copy {
  const position = encodeAsBytes({ [ORIGINAL]: formatPosition(original) })
  return { key: null, value: null, headers: [...headers.filter(isRedriveHeader), ...position] }
}

/** The position of a record that was too large to copy. */
export interface OriginalPosition extends TopicPartition {
  readonly offset: number
  /** Another timestamp means another record: the topic was deleted and created again. */
  readonly timestamp: number
}

/** Returns the position of the original of a dead letter without content; undefined for other dead letters. */
export function originalOf({ key, value, headers }: KafkaRecord): OriginalPosition | undefined {
  const isEmpty = key === null && value === null && has(headers, REASON)
  const header = isEmpty ? readable(headers)[ORIGINAL] : undefined
  return typeof header === 'string' ? parsePosition(header) : undefined
}

/** Parses a position; undefined for other text: any program can write a header. */
export function parsePosition(text: string): OriginalPosition | undefined {
  try {
    const [topic, partition, offset, timestamp] = JSON.parse(text) as readonly unknown[]
    const isCount = (value: unknown) => Number.isSafeInteger(value) && (value as number) >= 0
    return typeof topic === 'string' && [partition, offset, timestamp].every(isCount)
      ? ({ topic, partition, offset, timestamp } as OriginalPosition)
      : undefined
  } catch {
    return undefined
  }
}

export const formatPosition = ({ topic, partition, offset, timestamp }: OriginalPosition): string =>
  JSON.stringify([topic, partition, offset, timestamp])

/** Returns a dead letter without content, completed by its original. */
export function completed(
  deadLetter: KafkaRecord,
  { key, value, headers }: KafkaRecord,
): KafkaRecord {
  const own = deadLetter.headers.filter(([name]) => name.toString() !== ORIGINAL)
  return { ...deadLetter, key, value, headers: [...producerHeaders(headers), ...own] }
}

const PREFIX = Buffer.from(HEADER_PREFIX)

export const isRedriveHeader = ([name]: Header): boolean =>
  name.subarray(0, PREFIX.length).equals(PREFIX)

const producerHeaders = (headers: readonly Header[]): readonly Header[] =>
  headers.some(isRedriveHeader) ? headers.filter((header) => !isRedriveHeader(header)) : headers

const encodeAsBytes = (headers: Readonly<Record<string, string>>): readonly Header[] =>
  Object.entries(headers).map(([name, value]) => [Buffer.from(name), Buffer.from(value)])

const TIME_HEADER = Buffer.from('redrive-time' satisfies keyof KafkaHeaderTable)

/** A record that contains nothing: its timestamp shows the time of the broker. */
export const TIME_RECORD: Copy = {
  key: null,
  value: null,
  headers: [[TIME_HEADER, Buffer.from('1')]],
}

export const isTimeRecord = ({ key, value, headers }: KafkaRecord): boolean =>
  value === null && key === null && has(headers, TIME_HEADER)

/** Returns a reported time; undefined for -1, which means that the topic does not have the time of the broker. */
export const appendTimeOf = (time: number): number | undefined => (time >= 0 ? time : undefined)

// ---- replays ----------------------------------------------------------------------------------

/** Returns the Kafka-specific parts of a drained record as text, for storage with the dead letter. */
export function envelopeOf({
  key,
  value,
  headers,
}: Pick<KafkaRecord, 'key' | 'value' | 'headers'>): Record<string, string> {
  const producerEntries = producerHeaders(headers).map(([name, content]) => [
    base64(name),
    base64(content),
  ])
  return {
    ...(key === null ? {} : { recordKey: key.toString('base64') }),
    ...(value === null ? { tombstone: 'true' } : {}),
    ...(producerEntries.length === 0 ? {} : { headers: JSON.stringify(producerEntries) }),
  }
}

/** Returns headers that were stored as text. */
export const storedHeaders = (text = '[]'): readonly Header[] =>
  (JSON.parse(text) as readonly [string, string | null][]).map(([name, value]) => [
    Buffer.from(name, 'base64'),
    value === null ? null : Buffer.from(value, 'base64'),
  ])

/** Returns key and value of a stored record. */
export const storedContent = (
  { recordKey, tombstone }: Readonly<Record<string, string>>,
  bytes: Uint8Array,
): Pick<Copy, 'key' | 'value'> => ({
  key: recordKey === undefined ? null : Buffer.from(recordKey, 'base64'),
  value:
    tombstone === 'true' && bytes.length === 0
      ? null
      : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength),
})

export const base64 = (bytes: Buffer | null): string | null => bytes?.toString('base64') ?? null

/**
 * Returns the topic for a replay of a Redrive dead letter: a retry topic of the group that failed, because
 * every group reads the source. In lane order it returns undefined, which means the source. There, the replay
 * comes after the records of its key and cannot run at the same time as one of them.
 */
export function replayTopicOf({ topic, headers }: KafkaRecord, origin: string): string | undefined {
  const group = groupIn(topic, origin)
  if (group === undefined || readable(headers)[ORDER] === 'lane') return undefined
  return retryTopic(origin, group, tierFor(0))
}

const REPLAY_ID = Buffer.from(`${HEADER_PREFIX}replay-id`)
const REASON = Buffer.from(`${HEADER_PREFIX}reason`)

/** Returns whether this is a replay without an attempt yet, which has no delay. A retry of it has a reason header. */
export const isFreshReplay = ({ headers }: KafkaRecord): boolean =>
  has(headers, REPLAY_ID) && !has(headers, REASON)

const has = (headers: readonly Header[], wanted: Buffer) =>
  headers.some(([name]) => name.equals(wanted))

/** A record to publish for a replay. */
export interface Replay {
  readonly copy: Copy
  readonly topic: string
  /** The partition that it was read from; undefined if no header contains it. */
  readonly partition: number | undefined
}

/** Returns the record to publish for a replay: the next cycle, which keeps only the number of the last one. */
export function replayOf(
  { delivery, envelope, origin }: DrainedDeadLetter,
  replayId: string,
): Replay {
  const { id, key, source, replaces, bytes } = delivery
  const cycle = nextCycle(delivery.cycle)
  const state = { id, key, source, replayId, replaces, cycle, reason: undefined }
  const { headers } = encodeHeaders(state)
  const { partition, replayTo = origin } = envelope
  const own = storedHeaders(envelope['headers'])
  return {
    topic: replayTo,
    partition: partition === undefined ? undefined : Number(partition),
    copy: {
      ...storedContent(envelope, bytes),
      headers: [...own, ...encodeAsBytes(headers)],
    },
  }
}
