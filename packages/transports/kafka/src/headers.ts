import {
  type Delivery,
  encodeHeaders,
  type FailureCycle,
  FIRST_CYCLE,
  HEADER_PREFIX,
} from '@redrive/core'
import type { DrainedDeadLetter } from '@redrive/runtime'
import type { TopicPartition } from './topic-partition.ts'
import { groupIn, retryTopic, tierFor } from './topology.ts'

/** A record as the broker keeps it. */
export interface KafkaRecord {
  readonly topic: string
  readonly partition: number
  readonly offset: number
  /** When the producer made it or the broker stored it, as the topic is set; epoch ms. */
  readonly timestamp: number
  readonly key: Buffer | null
  /** Null: a tombstone, which deletes its key from a compacted topic. */
  readonly value: Buffer | null
  readonly headers: readonly Header[]
}

/** Bytes on both sides; a name may occur more than once. */
export type Header = readonly [name: Buffer, value: Buffer | null]

/** A delivery with the record as it came. */
export interface KafkaDelivery extends Delivery {
  readonly raw: KafkaRecord
}

export type Headers = Readonly<Record<string, unknown>>

/** Where it is, which no other record of the cluster can say: a redelivery has the same name. */
export const positionOf = ({ topic, partition, offset }: KafkaRecord): string =>
  `${topic}/${partition}/${offset}`

/** Records of one key are one lane; those without a key are in no order. */
export const laneOf = ({ key }: KafkaRecord): string | undefined =>
  key === null ? undefined : key.toString('latin1')

export function text(headers: Headers, name: string): string | undefined {
  const value = headers[name]
  return typeof value === 'string' ? value : undefined
}

/** A producer of CloudEvents names each event: a second record of the same event is a duplicate. */
export function cloudEventKey(headers: Headers): string | undefined {
  const id = text(headers, 'ce_id')
  return id === undefined ? undefined : `${text(headers, 'ce_source') ?? ''}#${id}`
}

const utf8 = new TextDecoder('utf-8', { fatal: true })

/** By name: text where it is text, bytes where it is not, a list where a name occurs more than once. */
export function readable(headers: readonly Header[]): Headers {
  const found = Object.create(null) as Record<string, unknown>
  for (const [name, value] of headers) {
    const known = name.toString()
    const one = value === null ? null : textOrBytes(value)
    const before = found[known]
    if (before === undefined || known.startsWith(HEADER_PREFIX)) found[known] = one
    else found[known] = Array.isArray(before) ? [...(before as unknown[]), one] : [before, one]
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

/** Said by consumers in lane order: a replay must go where the other records of its key are. */
const ORDER = 'redrive-order'

/** What is produced: the partition is ours to choose, everything else is as it came. */
export interface Copy {
  readonly key: Buffer | null
  readonly value: Buffer | null
  readonly headers: readonly Header[]
}

export interface CopyOptions {
  readonly cycle: FailureCycle
  readonly reason: string
  readonly stack?: string | undefined
  readonly order: 'none' | 'lane'
  readonly budgetBytes: number
}

/** The same record with a later chapter of its history. */
export function copyOf(
  delivery: KafkaDelivery,
  { cycle, reason, stack, order, budgetBytes }: CopyOptions,
): { readonly copy: Copy; readonly truncated: number } {
  const { id, key, source, replayId, replaces, raw } = delivery
  const state = { id, key, source, replayId, replaces, cycle, reason, stack }
  const { headers, truncated } = encodeHeaders(state, budgetBytes)
  const own = asBytes(order === 'lane' ? { ...headers, [ORDER]: order } : headers)
  const { key: keyBytes, value } = raw
  return {
    copy: { key: keyBytes, value, headers: [...ofProducer(raw.headers), ...own] },
    truncated,
  }
}

const PREFIX = Buffer.from(HEADER_PREFIX)

const isOurs = ([name]: Header) => name.subarray(0, PREFIX.length).equals(PREFIX)

const ofProducer = (headers: readonly Header[]): readonly Header[] =>
  headers.some(isOurs) ? headers.filter((header) => !isOurs(header)) : headers

const asBytes = (headers: Readonly<Record<string, string>>): readonly Header[] =>
  Object.entries(headers).map(([name, value]) => [Buffer.from(name), Buffer.from(value)])

// ---- replays ----------------------------------------------------------------------------------

/** What only we can read of a drained record, as text that anyone can keep. */
export function envelopeOf({
  partition,
  key,
  value,
  headers,
}: KafkaRecord): Record<string, string> {
  const kept = ofProducer(headers).map(([name, content]) => [base64(name), base64(content)])
  return {
    partition: String(partition),
    ...(key === null ? {} : { recordKey: key.toString('base64') }),
    ...(value === null ? { tombstone: 'true' } : {}),
    ...(kept.length === 0 ? {} : { headers: JSON.stringify(kept) }),
  }
}

const base64 = (bytes: Buffer | null) => bytes?.toString('base64') ?? null

/**
 * Where a replay of our own dead letter goes: to the retries of the group that failed, because every
 * other group reads the source as well. In lane order it goes to the source all the same, behind the
 * records of its key: nothing else keeps it from running beside one of them.
 */
export function replayTopicOf({ topic, headers }: KafkaRecord, origin: string): string | undefined {
  const group = groupIn(topic, origin)
  if (group === undefined || readable(headers)[ORDER] === 'lane') return undefined
  return retryTopic(origin, group, tierFor(0))
}

const REPLAY_ID = Buffer.from(`${HEADER_PREFIX}replay-id`)
const REASON = Buffer.from(`${HEADER_PREFIX}reason`)

/** A replay that nobody has tried yet: it waits for nothing. A retry of it says why it is one. */
export const isFreshReplay = ({ headers }: KafkaRecord): boolean =>
  has(headers, REPLAY_ID) && !has(headers, REASON)

const has = (headers: readonly Header[], wanted: Buffer) =>
  headers.some(([name]) => name.equals(wanted))

/** The record as it goes back: the next cycle, with nothing of the last one but its number. */
export function replayOf(
  { delivery, envelope, origin }: DrainedDeadLetter,
  replayId: string,
): { readonly copy: Copy; readonly to: TopicPartition } {
  const { id, key, source, replaces, bytes } = delivery
  const cycle = { ...FIRST_CYCLE, number: delivery.cycle.number + 1 }
  const state = { id, key, source, replayId, replaces, cycle, reason: undefined }
  const { headers } = encodeHeaders(state)
  const { recordKey, tombstone, partition = '0', replayTo = origin } = envelope
  const kept = JSON.parse(envelope['headers'] ?? '[]') as readonly [string, string | null][]
  const own = kept.map(
    ([name, value]): Header => [
      Buffer.from(name, 'base64'),
      value === null ? null : Buffer.from(value, 'base64'),
    ],
  )
  return {
    to: { topic: replayTo, partition: Number(partition) },
    copy: {
      key: recordKey === undefined ? null : Buffer.from(recordKey, 'base64'),
      value:
        tombstone === 'true' && bytes.length === 0
          ? null
          : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength),
      headers: [...own, ...asBytes(headers)],
    },
  }
}
