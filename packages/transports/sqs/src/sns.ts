import { isRecord } from '@redrive/core/internal'
import type { Attribute } from './attributes.ts'

/** The message that a producer published to a topic of Amazon SNS. */
export interface SnsMessage {
  readonly body: string
  readonly attributes: readonly Attribute[]
}

/** Reads the envelope of SNS. Returns undefined for other bodies, such as with raw message delivery. */
export function unwrapSns(text: string): SnsMessage | undefined {
  // Most other bodies need not be parsed.
  if (!text.includes('"TopicArn"')) return undefined
  const envelope = parse(text)
  if (!isRecord(envelope) || envelope['Type'] !== 'Notification') return undefined
  const { Message: body, TopicArn: topic, MessageAttributes: attributes } = envelope
  if (typeof body !== 'string' || typeof topic !== 'string') return undefined
  return { body, attributes: isRecord(attributes) ? Object.entries(attributes).flatMap(read) : [] }
}

function read([name, attribute]: readonly [string, unknown]): readonly Attribute[] {
  if (!isRecord(attribute)) return []
  const { Type: type, Value: value } = attribute
  return typeof type === 'string' && typeof value === 'string' ? [[name, type, value]] : []
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // Not JSON: the topic has raw message delivery, or the message came from another producer.
    return undefined
  }
}
