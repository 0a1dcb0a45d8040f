import type { FailureRecord } from '@redrive/core'
import {
  JetStreamApiError,
  type JetStreamManager,
  RetentionPolicy,
  type StreamConfig,
} from '@nats-io/jetstream'
import type { Msg, NatsConnection } from '@nats-io/transport-node'
import { existing } from './declare.ts'
import { type PlacedMessage, placed } from './delivery.ts'
import { acknowledge } from './publish.ts'

/** A message that a plain consumer gave up: the server announces it, and the message stays in its stream. */
export interface ForeignDeath {
  readonly stream: string
  readonly sequence: number
  readonly deliveries: number
  readonly reason: 'max_deliver' | 'terminated'
  /** The reason that the consumer stated when it ended the message. */
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

/** The reason that the server writes when a message left its stream before a consumer acknowledged it. */
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

export const isReason = (value: unknown): value is ForeignDeath['reason'] =>
  Object.values(REASONS).some((reason) => reason === value)

const DESCRIPTIONS: Readonly<Record<ForeignDeath['reason'], string>> = {
  max_deliver: 'The consumer did not acknowledge the message, and max_deliver is reached.',
  terminated: 'The consumer ended the message with term.',
}

/** 10,037: the stream no longer has the message. */
const NO_MESSAGE = 10_037

/** Reads the message of an advisory from its stream. Undefined: the stream no longer has it. */
export async function readOriginal(
  manager: JetStreamManager,
  death: ForeignDeath,
): Promise<PlacedMessage | undefined> {
  const { stream, sequence, at } = death
  try {
    const stored = await manager.streams.getMessage(stream, { seq: sequence })
    if (stored === null) return undefined
    if (stored.time.getTime() > at && (await isNewer(manager, death))) return undefined
    return placed(stream, stored)
  } catch (error) {
    if (error instanceof JetStreamApiError && error.code === NO_MESSAGE) return undefined
    throw error
  }
}

/**
 * Returns whether the stream was created after the advisory: it has another message with the same sequence. The time of
 * the message alone does not show it, because two servers with different clocks may have written the times.
 */
async function isNewer(manager: JetStreamManager, { stream, at }: ForeignDeath): Promise<boolean> {
  const { created } = await manager.streams.info(stream)
  return Date.parse(String(created)) > at
}

/** How a message that a plain consumer gave up leaves its stream. */
export type Removal =
  /** A work queue has one consumer for each message, so nothing else needs it. */
  | 'delete'
  /** Other consumers may need it: the server removes it when all of them have acknowledged it. */
  | 'acknowledge'
  /** A stream with limits keeps its messages. */
  | 'keep'

export const removalFrom = ({
  retention,
  deny_delete,
}: Pick<StreamConfig, 'retention' | 'deny_delete'>): Removal => {
  if (retention === RetentionPolicy.Limits) return 'keep'
  return retention === RetentionPolicy.Workqueue && !deny_delete ? 'delete' : 'acknowledge'
}

/** The consumer that gave up messages, and access to its server. */
export interface ForeignConsumer {
  readonly connection: NatsConnection
  readonly manager: JetStreamManager
  readonly consumer: string
  readonly confirmTimeoutMs: number
}

/** Removes the message from its stream, unless another consumer needs it. */
export async function removeOriginal(
  foreign: ForeignConsumer,
  death: ForeignDeath,
  removal: Removal,
): Promise<void> {
  if (removal === 'delete') await deleteOriginal(foreign.manager, death)
  if (removal === 'acknowledge') await acknowledgeFor(foreign, death)
}

async function deleteOriginal(manager: JetStreamManager, death: ForeignDeath): Promise<void> {
  try {
    await manager.streams.deleteMessage(death.stream, death.sequence, false)
  } catch (error) {
    // Removed before, such as by an earlier release whose confirmation was lost.
    if ((await readOriginal(manager, death)) !== undefined) throw error
  }
}

/**
 * Acknowledges the message in place of the consumer that gave it up. The server keeps a message that reached
 * `max_deliver` until it is acknowledged or deleted.
 */
async function acknowledgeFor(
  { connection, manager, consumer, confirmTimeoutMs }: ForeignConsumer,
  { stream, sequence }: ForeignDeath,
): Promise<void> {
  const info = await existing(manager.consumers.info(stream, consumer))
  // It was deleted, or created again and will read the message: it holds nothing back.
  if (info === undefined || info.delivered.stream_seq < sequence) return
  // Only the sequence in the stream selects the message. The other numbers are for the client library.
  const subject = `$JS.ACK.${stream}.${consumer}.1.${sequence}.0.0.0`
  await acknowledge(connection, subject, confirmTimeoutMs)
}
