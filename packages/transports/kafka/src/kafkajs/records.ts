import type { Copy, Header, KafkaRecord } from '../delivery.ts'
import type { TopicPartition } from '../protocol/topic-partition.ts'
import type { BatchPayload, MessageHeaders, MessageToSend, ReceivedMessage } from './client.ts'

export const recordsIn = ({
  topic,
  partition,
  messages,
}: BatchPayload['batch']): readonly KafkaRecord[] =>
  messages.map((message) => recordOf({ topic, partition }, message))

function recordOf(
  topicPartition: TopicPartition,
  { key, value, timestamp, offset, headers }: ReceivedMessage,
): KafkaRecord {
  return {
    ...topicPartition,
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

const EMPTY = Buffer.alloc(0)

/** Converts a copy to a message. Repeated header names become a list. Null values become empty: these clients cannot send null. */
export function messageOf(partition: number, { key, value, headers }: Copy): MessageToSend {
  const byName = new Map<string, Buffer[]>()
  for (const [name, content] of headers) {
    const headerName = name.toString()
    const values = byName.get(headerName)
    if (values === undefined) byName.set(headerName, [content ?? EMPTY])
    else values.push(content ?? EMPTY)
  }
  return { key, value, partition, headers: Object.fromEntries(byName) }
}
