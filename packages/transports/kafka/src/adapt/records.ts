import type { Copy, Header, KafkaRecord } from '../headers.ts'
import type { TopicPartition } from '../topic-partition.ts'
import type { BatchPayload, MessageHeaders, MessageToSend, ReceivedMessage } from './client.ts'

export const recordsIn = ({
  topic,
  partition,
  messages,
}: BatchPayload['batch']): readonly KafkaRecord[] =>
  messages.map((message) => recordOf({ topic, partition }, message))

function recordOf(
  place: TopicPartition,
  { key, value, timestamp, offset, headers }: ReceivedMessage,
): KafkaRecord {
  return {
    ...place,
    offset: Number(offset),
    timestamp: Number(timestamp),
    key: bytesOf(key),
    value: bytesOf(value),
    headers: Object.entries(headers ?? {}).flatMap(([name, content]) => headersOf(name, content)),
  }
}

const bytesOf = (value: Buffer | string | null | undefined) =>
  typeof value === 'string' ? Buffer.from(value) : (value ?? null)

const headersOf = (name: string, content: MessageHeaders[string]): readonly Header[] =>
  (Array.isArray(content) ? content : [content]).map((value) => [Buffer.from(name), bytesOf(value)])

const NOTHING = Buffer.alloc(0)

/** A name that occurs more than once becomes a list. Without a value it gets an empty one: these clients send no null. */
export function messageOf(partition: number, { key, value, headers }: Copy): MessageToSend {
  const byName = new Map<string, Buffer[]>()
  for (const [name, content] of headers) {
    const known = name.toString()
    const values = byName.get(known)
    if (values === undefined) byName.set(known, [content ?? NOTHING])
    else values.push(content ?? NOTHING)
  }
  return { key, value, partition, headers: Object.fromEntries(byName) }
}
