import type { FailureRecord } from '@redrive/core'
import { JetStreamApiError, type JetStreamManager } from '@nats-io/jetstream'
import type { Msg } from '@nats-io/transport-node'
import type { StoredMessage } from './delivery.ts'

/** A message that a plain consumer gave up: the server announces it, and the message stays in its stream. */
export interface ForeignDeath {
  readonly stream: string
  readonly sequence: number
  readonly deliveries: number
  readonly reason: 'max_deliver' | 'terminated'
  /** What the consumer stated when it ended the message. */
  readonly text: string | undefined
  /** Epoch ms, by the clock of the server. */
  readonly at: number
}

const REASONS: Readonly<Record<string, ForeignDeath['reason']>> = {
  'io.nats.jetstream.advisory.v1.max_deliver': 'max_deliver',
  'io.nats.jetstream.advisory.v1.terminated': 'terminated',
}

/**
 * Reads an advisory of the server about a stream. Returns undefined for other content: any program can write to its
 * subject, and its message is removed from the stream that it names.
 */
export function readAdvisory(
  message: Pick<Msg, 'data'>,
  expected: string,
): ForeignDeath | undefined {
  const { type, stream, stream_seq: sequence, deliveries, reason: text, timestamp } = parse(message)
  const reason = REASONS[String(type)]
  if (reason === undefined || stream !== expected || !Number.isSafeInteger(sequence))
    return undefined
  const at = Date.parse(String(timestamp))
  return {
    stream: expected,
    sequence: Number(sequence),
    deliveries: Number.isSafeInteger(deliveries) ? Number(deliveries) : 0,
    reason,
    text: typeof text === 'string' && text !== '' ? text : undefined,
    at: Number.isNaN(at) ? 0 : at,
  }
}

function parse({ data }: Pick<Msg, 'data'>): Readonly<Record<string, unknown>> {
  try {
    return { ...(JSON.parse(new TextDecoder().decode(data)) as object | null) }
  } catch {
    // Not JSON, so it is not an advisory.
    return {}
  }
}

/** What the server writes when a message is no longer in its stream, and a consumer has not acknowledged it. */
const REMOVED = 'Unacknowledged message was deleted'

/**
 * Returns whether the server announces that a message was removed from its stream. In a queue, acknowledgements remove
 * messages. After a change of the leader, a consumer may know its acknowledgements later than the stream: nothing died.
 */
export const isRemoval = (message: Pick<Msg, 'data'>, stream: string): boolean =>
  readAdvisory(message, stream)?.text === REMOVED

/** Returns the failure as a record of the history. The server knows no error, only how often it delivered the message. */
export const failureOf = ({ deliveries, reason, text, at }: ForeignDeath): FailureRecord => ({
  number: Math.max(1, deliveries),
  at,
  waitedMs: 0,
  class: 'unknown',
  signature: `nats:${reason}${text === undefined ? '' : `:${text}`}`,
  code: reason === 'max_deliver' ? 'MAX_DELIVER' : 'TERMINATED',
  type: undefined,
  message: text ?? DESCRIPTIONS[reason],
  counted: true,
})

const DESCRIPTIONS: Readonly<Record<ForeignDeath['reason'], string>> = {
  max_deliver: 'The consumer did not acknowledge the message, and max_deliver is reached.',
  terminated: 'The consumer ended the message with term.',
}

/** 10,037: the stream no longer has the message. */
const NO_MESSAGE = 10_037

/** Reads the message of an advisory from its stream. Undefined: the stream no longer has it. */
export async function readOriginal(
  manager: JetStreamManager,
  { stream, sequence }: ForeignDeath,
): Promise<(StoredMessage & { readonly storedAt: string }) | undefined> {
  try {
    const stored = await manager.streams.getMessage(stream, { seq: sequence })
    if (stored === null) return undefined
    const { subject, data, header, time } = stored
    return { subject, data, headers: header, storedAt: nanosOf(stored.timestamp, time) }
  } catch (error) {
    if (error instanceof JetStreamApiError && error.code === NO_MESSAGE) return undefined
    throw error
  }
}

/** Returns nanoseconds since 1970, as in the subjects of acknowledgements, so that the message has the same id. */
function nanosOf(timestamp: string, time: Date): string {
  const fraction = /\.(\d{1,9})/.exec(timestamp)?.[1] ?? ''
  return `${Math.floor(time.getTime() / 1_000)}${fraction.padEnd(9, '0')}`
}

/** Removes the message from its stream. */
export async function removeOriginal(
  manager: JetStreamManager,
  { stream, sequence }: ForeignDeath,
): Promise<void> {
  try {
    await manager.streams.deleteMessage(stream, sequence, false)
  } catch (error) {
    // Removed before, such as by an earlier release whose confirmation was lost.
    if (!(error instanceof JetStreamApiError)) throw error
  }
}
