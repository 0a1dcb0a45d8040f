import {
  type Delivery,
  decodeHeaders,
  encodeHeaders,
  type FailureCycle,
  HEADER_PREFIX,
  nextCycle,
} from '@redrive/core'
import type { DrainedDeadLetter } from '@redrive/runtime'
import type { StoredMsg } from '@nats-io/jetstream'
import { headers as newHeaders, type Msg, type MsgHdrs } from '@nats-io/transport-node'
import type { NatsEventHeaderTable, NatsHeaderTable } from './header-tables.ts'

/** A delivery with the message of the client library, which is needed to acknowledge it. */
export interface NatsDelivery extends Delivery {
  readonly message: Msg
  /** The subject to which the producer published the message. */
  readonly subject: string
  /** Where the message is stored. */
  readonly place: StoredPlace
}

/** The position of a message in a stream, as the server writes it into the subject of the acknowledgement. */
export interface StoredPlace {
  readonly stream: string
  readonly sequence: number
  /** Time of storage by the clock of the server, as nanoseconds since 1970. */
  readonly storedAt: string
  readonly deliveries: number
}

export type Headers = Readonly<Record<string, unknown>>

/** The subject of the original message. */
export const SUBJECT: keyof NatsHeaderTable = 'redrive-subject'
const COUNT_BEFORE = 'redrive-delivery-count' satisfies keyof NatsHeaderTable
const CONTENT_TYPE = 'content-type' satisfies keyof NatsEventHeaderTable
const TYPE = 'ce-type' satisfies keyof NatsEventHeaderTable
const MESSAGE_ID = 'Nats-Msg-Id'

/** Headers that the server reads or writes. On a copy, the server would obey them again. */
const SERVER_HEADERS = /^Nats-/

export function toDelivery(source: string, message: Msg): NatsDelivery {
  const place = placeIn(message)
  return { ...contentOf(source, message, place), message, place }
}

/** The content of a message, without the data that acknowledges it. */
export interface StoredMessage {
  readonly subject: string
  readonly data: Uint8Array
  readonly headers?: MsgHdrs | undefined
}

export function contentOf(
  source: string,
  { subject, data, headers: raw }: StoredMessage,
  { stream, sequence, storedAt, deliveries }: StoredPlace,
): Delivery & { readonly subject: string } {
  const headers = headersIn(raw)
  const decoded = decodeHeaders(headers)
  // The time is part of it: a stream that is deleted and created again counts from 1 again.
  const id = decoded.id ?? (textIn(headers, MESSAGE_ID) || `${stream}:${sequence}:${storedAt}`)
  return {
    id,
    source,
    subject: textIn(headers, SUBJECT) ?? subject,
    lane: undefined,
    key: decoded.key ?? id,
    type: textIn(headers, TYPE),
    bytes: data,
    contentType: textIn(headers, CONTENT_TYPE),
    headers: producerHeaders(decoded.foreign),
    cycle: decoded.cycle,
    deliveryCount: deliveries + countBefore(headers),
    replayId: decoded.replayId,
    headerProblems: decoded.problems,
    ...(decoded.replaces === undefined ? {} : { replaces: decoded.replaces }),
  }
}

const textIn = (headers: Headers, name: string): string | undefined => {
  const value = headers[name] ?? headers[CANONICAL[name] ?? name]
  return typeof value === 'string' ? value : undefined
}

/** Clients for Go and Java often write the names of headers in this form. */
const CANONICAL: Readonly<Record<string, string>> = { [CONTENT_TYPE]: 'Content-Type' }

/** Returns the headers by name. A name that occurs several times has a list of values. */
export function headersIn(raw: MsgHdrs | undefined): Headers {
  const found: Record<string, unknown> = {}
  if (raw === undefined) return found
  for (const [name, values] of raw) found[name] = values.length === 1 ? values[0] : values
  return found
}

const producerHeaders = (foreign: Headers): Headers =>
  Object.fromEntries(Object.entries(foreign).filter(([name]) => !SERVER_HEADERS.test(name)))

function countBefore(headers: Headers): number {
  const text = textIn(headers, COUNT_BEFORE)
  return text !== undefined && /^\d{1,6}$/.test(text) ? Number(text) : 0
}

/** Reads the position from the subject of the acknowledgement. Domains add two parts in front. */
export function placeIn({ reply = '' }: Pick<Msg, 'reply'>): StoredPlace {
  const parts = reply.split('.')
  const [stream = '', , deliveries, sequence, , storedAt = ''] = parts.slice(
    parts.length > 9 ? 4 : 2,
  )
  return { stream, sequence: Number(sequence), storedAt, deliveries: Number(deliveries) }
}

/** A stored message with its position. */
export interface PlacedMessage extends StoredMessage {
  readonly place: StoredPlace
}

/** Returns a message that was read by its sequence, with the same position as in a delivery. */
export function placed(stream: string, stored: StoredMsg): PlacedMessage {
  const { subject, data, header, seq, time, timestamp } = stored
  // Nanoseconds since 1970, as in the subjects of acknowledgements.
  const fraction = /\.(\d{1,9})/.exec(timestamp)?.[1] ?? ''
  const storedAt = `${Math.floor(time.getTime() / 1_000)}${fraction.padEnd(9, '0')}`
  return {
    subject,
    data,
    headers: header,
    place: { stream, sequence: seq, storedAt, deliveries: 1 },
  }
}

// ---- copies -----------------------------------------------------------------------------------

/** The data that a copy adds to the original. */
export interface CopyOptions {
  readonly cycle: FailureCycle
  readonly reason?: string | undefined
  readonly handler?: string | undefined
  readonly stack?: string | undefined
  /** Deliveries without a result so far, for a copy that only returns the message. */
  readonly deliveries?: number
  readonly budgetBytes: number
}

export interface Copy {
  readonly bytes: Uint8Array
  readonly headers: MsgHdrs
  /** Number of failures removed from the history to fit the header budget. */
  readonly truncated: number
}

/** Returns a copy of the message with the updated failure history. Bytes and producer headers stay unchanged. */
export function copyOf(delivery: NatsDelivery, options: CopyOptions): Copy {
  const { id, key, source, replayId, replaces, subject, bytes } = delivery
  const { cycle, reason, handler, stack, budgetBytes, deliveries } = options
  const state = { id, key, source, replayId, replaces, cycle, reason, handler, stack }
  const { headers, truncated } = encodeHeaders(state, budgetBytes)
  const count = deliveries === undefined ? {} : { [COUNT_BEFORE]: String(deliveries) }
  return {
    bytes,
    truncated,
    headers: toHeaders({ ...delivery.headers, ...headers, [SUBJECT]: subject, ...count }),
  }
}

/** Returns the message to publish for a replay: the next cycle, which keeps only the number of the last one. */
export function replayOf(
  { delivery, envelope }: DrainedDeadLetter,
  replayId: string,
): Omit<Copy, 'truncated'> {
  const { id, key, source, replaces, bytes } = delivery
  const cycle = nextCycle(delivery.cycle)
  const { headers } = encodeHeaders({
    id,
    key,
    source,
    replayId,
    replaces,
    cycle,
    reason: undefined,
  })
  const { subject } = envelope
  const original = subject === undefined ? {} : { [SUBJECT]: subject }
  return { bytes, headers: toHeaders({ ...delivery.headers, ...headers, ...original }) }
}

/** Returns the headers of Redrive of a dead letter, which `putBack` needs. */
export const ownHeaders = (headers: Headers): Headers =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => name.startsWith(HEADER_PREFIX)))

export function toHeaders(values: Headers): MsgHdrs {
  const made = newHeaders()
  for (const [name, value] of Object.entries(values)) {
    for (const one of Array.isArray(value) ? (value as unknown[]) : [value]) {
      if (one !== undefined) made.append(name, typeof one === 'string' ? one : JSON.stringify(one))
    }
  }
  return made
}
