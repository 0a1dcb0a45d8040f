import type { DrainedDeadLetter } from '@redrive/runtime'
import {
  base64,
  type Copy,
  isRedriveHeader,
  type KafkaRecord,
  storedContent,
  storedHeaders,
} from './delivery.ts'

/** Returns what a dead letter needs to be put back: its topic and partition, and the headers of Redrive. */
export function putBackEnvelopeOf({
  topic,
  partition,
  headers,
}: Pick<KafkaRecord, 'topic' | 'partition' | 'headers'>): Record<string, string> {
  const own = headers
    .filter(isRedriveHeader)
    .map(([name, content]) => [base64(name), base64(content)])
  return {
    deadLetterTopic: topic,
    deadLetterPartition: String(partition),
    ...(own.length === 0 ? {} : { deadLetterHeaders: JSON.stringify(own) }),
  }
}

/** Returns the record as it was in its dead-letter topic. Undefined: it was drained by an older release. */
export function putBackOf({
  delivery: { bytes },
  envelope,
}: DrainedDeadLetter):
  | { readonly copy: Copy; readonly topic: string; readonly partition: number }
  | undefined {
  const { deadLetterTopic: topic, deadLetterPartition, deadLetterHeaders, headers } = envelope
  if (topic === undefined) return undefined
  return {
    topic,
    partition: Number(deadLetterPartition ?? 0),
    copy: {
      ...storedContent(envelope, bytes),
      headers: [...storedHeaders(headers), ...storedHeaders(deadLetterHeaders)],
    },
  }
}
