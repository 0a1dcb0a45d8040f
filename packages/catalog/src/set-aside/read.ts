import type { DrainedDeadLetter } from '@redrive/runtime'
import type { RunSql } from '../database.ts'
import type { PayloadKeys } from '../encryption.ts'
import { Check, isId, PAGE, SOURCES_MAX } from '../read/check.ts'
import { openBody } from '../read/open-payload.ts'
import { openParts, readParts } from '../read/payload.ts'
import { ask, cursorText, readCursor, type Reader, reading } from '../read/sql.ts'
import { decodeMessage, encodeAny } from './codec.ts'
import { GET_SET_ASIDE, LIST_SET_ASIDE, SET_ASIDE_PART, SET_ASIDE_PARTS } from './statements.ts'
import type { SetAsideReason } from './store.ts'

/**
 * `'requested'`: a replay waits for its approval. `'replaying'`: it is approved and about to be published.
 * `'replayed'`: the broker has stored it.
 */
export type SetAsideStatus = 'open' | 'requested' | 'replaying' | 'replayed' | 'discarded'

const SET_ASIDE_STATUSES: readonly SetAsideStatus[] = Object.freeze([
  'open',
  'requested',
  'replaying',
  'replayed',
  'discarded',
])

/** A message that could not be catalogued as a dead letter. Long texts are shortened. */
export interface SetAsideMessage {
  readonly id: string
  readonly source: string
  /** Time of the first ingest, epoch ms. */
  readonly at: number
  readonly reason: SetAsideReason
  /** The reason as a sentence. */
  readonly explanation: string
  readonly status: SetAsideStatus
  readonly messageId: string
  readonly key: string
  readonly type: string | undefined
  readonly origin: string
  readonly contentType: string | undefined
  /** Size of the body. */
  readonly payloadBytes: number
  /** Whether all bytes and headers are stored. False only for messages that an earlier release truncated. */
  readonly isComplete: boolean
  /** SHA-256 of the body, in hexadecimal digits. */
  readonly sha256: string
  /** The user who requested the replay. */
  readonly requestedBy: string | undefined
  /** Names of headers that the requested replay leaves out. */
  readonly withoutHeaders: readonly string[]
  /** Time of the replay or discard, epoch ms. */
  readonly settledAt: number | undefined
  /** Why the last replay failed. */
  readonly replayError: string | undefined
}

/** A message with its body and headers. */
export interface SetAsideDetail extends SetAsideMessage {
  /** The body; only its start if `isComplete` is false. */
  readonly bytes: Uint8Array
  /** The message as received from the broker: bytes, headers and envelope unchanged. Undefined if it is not complete. */
  readonly drained: DrainedDeadLetter | undefined
  /**
   * The headers as text that loses nothing: each value is one line of JSON, and lists and tables contain the line
   * numbers of their values. Undefined if the message is not complete.
   */
  readonly encodedHeaders: string | undefined
}

/** A message whose body is read in pieces, so that no process needs all of it in memory. */
export interface OpenSetAside extends Omit<SetAsideDetail, 'bytes'> {
  /**
   * Returns the body in pieces of at most 1 MiB. Each is read from the database when the caller takes it. Throws if the
   * message is deleted in between.
   */
  readonly pieces: () => AsyncIterable<Uint8Array>
}

export interface SetAsideQuery {
  readonly sources?: readonly string[]
  /** Default: open, requested and replaying. */
  readonly statuses?: readonly SetAsideStatus[]
  /** Maximum number of messages (1 to 200, default 50). */
  readonly limit?: number
  /** `nextCursor` of the previous page. */
  readonly cursor?: string
}

export interface SetAsidePage {
  readonly messages: readonly SetAsideMessage[]
  /** Cursor of the next page; undefined on the last page. */
  readonly nextCursor: string | undefined
}

/** The statuses of messages that still need a decision. */
const UNSETTLED: readonly SetAsideStatus[] = ['open', 'requested', 'replaying']
const FIELDS = { sources: true, statuses: true, limit: true, cursor: true } as const

/** Returns a page of messages, newest first. */
export async function listSetAside(reader: Reader, query: SetAsideQuery): Promise<SetAsidePage> {
  const check = new Check('setAside.list()', query, FIELDS)
  check.lists('sources', SOURCES_MAX)
  check.someOf('statuses', SET_ASIDE_STATUSES)
  check.page()
  check.done()
  const { sources, statuses = UNSETTLED, limit = PAGE, cursor } = query
  const { at = null, id = null } = readCursor(cursor) ?? {}
  const values = [sources ?? null, statuses, at, id, limit + 1]
  const rows = await ask<Row>(reader, { text: LIST_SET_ASIDE, values })
  const messages = rows.slice(0, limit).map(messageOf)
  const last = messages.at(-1)
  const isMore = rows.length > limit && last !== undefined
  return { messages, nextCursor: isMore ? cursorText(last) : undefined }
}

/** Returns one message without its body and headers. Needs no key. */
export async function getSetAside(
  reader: Reader,
  id: string,
): Promise<SetAsideMessage | undefined> {
  if (!isId(id)) return undefined
  const [row] = await ask<Row>(reader, { text: GET_SET_ASIDE, values: [id] })
  return row && messageOf(row)
}

export async function readSetAside(
  reader: Reader,
  keys: PayloadKeys | undefined,
  id: string,
): Promise<SetAsideDetail | undefined> {
  if (!isId(id)) return undefined
  return reading(reader, async (run) => {
    const [row] = await run<Row>(GET_SET_ASIDE, [id])
    if (row === undefined) return undefined
    return { ...messageOf(row), ...(await readContent(run, keys, { id, bytes: row.kept_bytes })) }
  })
}

/** Opens a message, to read its body in pieces. */
export async function openSetAside(
  reader: Reader,
  keys: PayloadKeys | undefined,
  id: string,
): Promise<OpenSetAside | undefined> {
  const message = await getSetAside(reader, id)
  if (message === undefined) return undefined
  const statement = (part: number) => ({ text: SET_ASIDE_PART, values: [id, part] })
  const found = await openBody(reader, keys, id, statement)
  if (found === undefined) return undefined
  const { wire, pieces } = found
  return { ...message, ...decoded(wire, EMPTY), pieces }
}

const EMPTY = new Uint8Array()

/** Reads the body and the message of a row. */
export async function readContent(
  run: RunSql,
  keys: PayloadKeys | undefined,
  { id, bytes: size }: { readonly id: string; readonly bytes: number },
): Promise<Pick<SetAsideDetail, 'bytes' | 'drained' | 'encodedHeaders'>> {
  const parts = await readParts(run, { text: SET_ASIDE_PARTS, id, bytes: size })
  const { bytes, wire } = await openParts(id, parts, keys)
  return { bytes, ...decoded(wire, bytes) }
}

function decoded(
  wire: Uint8Array | undefined,
  bytes: Uint8Array,
): Pick<SetAsideDetail, 'drained' | 'encodedHeaders'> {
  if (wire === undefined) return { drained: undefined, encodedHeaders: undefined }
  const drained = decodeMessage(wire, bytes)
  return { drained, encodedHeaders: encodeAny(drained.delivery.headers).toString() }
}

interface Row {
  readonly id: string
  readonly source: string
  readonly at: number
  readonly reason: SetAsideReason
  readonly explanation: string
  readonly status: SetAsideStatus
  readonly message_id: string
  readonly key: string
  readonly type: string | null
  readonly origin: string
  readonly content_type: string | null
  readonly payload_bytes: number
  readonly kept_bytes: number
  readonly is_complete: boolean
  readonly sha256: string
  readonly requested_by: string | null
  readonly without_headers: readonly string[]
  readonly settled_at: number | null
  readonly replay_error: string | null
}

const messageOf = (row: Row): SetAsideMessage => ({
  id: row.id,
  source: row.source,
  at: row.at,
  reason: row.reason,
  explanation: row.explanation,
  status: row.status,
  messageId: row.message_id,
  key: row.key,
  type: row.type ?? undefined,
  origin: row.origin,
  contentType: row.content_type ?? undefined,
  payloadBytes: row.payload_bytes,
  isComplete: row.is_complete,
  sha256: row.sha256,
  requestedBy: row.requested_by ?? undefined,
  withoutHeaders: row.without_headers,
  settledAt: row.settled_at ?? undefined,
  replayError: row.replay_error ?? undefined,
})
