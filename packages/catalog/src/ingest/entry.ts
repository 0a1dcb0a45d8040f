import { type AttemptRecord, cycleOfTold, type FailureClass } from '@redrive/core'
import type { DrainedDeadLetter } from '@redrive/runtime'
import { MESSAGE_MAX, NAME_MAX, storable, storableOrNull } from '../text.ts'
import { encodeWire } from '../wire.ts'
import { readableHeaders } from './headers.ts'
import { deadLetterId, groupId, identityHash, momentOf, sha256Of, uuidOf } from './identity.ts'
import type { ResolvedIngest } from './options.ts'
import { extractedFrom, parsedBody, previewOf } from './preview.ts'

export interface KnownSource {
  readonly id: number
  readonly name: string
  /** Statements that hold for each transaction of its ingest. */
  readonly settings: string
}

/** A dead letter on its way into the tables. */
export interface Entry {
  readonly drained: DrainedDeadLetter
  readonly hash: Buffer
  readonly sha256: Buffer
  readonly wire: Buffer
  /** Undefined: it does not say. */
  readonly saidAt: number | undefined
  readonly last: AttemptRecord
  readonly group: NewGroup
  readonly headers: string
  readonly history: string
  readonly preview: string | undefined
  /** Values to find it by. */
  readonly extracted: readonly (readonly [name: string, value: string])[]
}

/** A group as it is when its first dead letter comes. */
export interface NewGroup {
  readonly id: string
  readonly signature: string
  readonly algorithm: number
  readonly class: FailureClass
  readonly code: string | null
  /** The message of its first dead letter. */
  readonly sample: string
}

/** An entry whose moment is known. */
export interface DatedEntry extends Entry {
  readonly id: string
  readonly firstFailedAt: number
  readonly lastFailedAt: number
}

/** Reads all that is asked of a dead letter. Throws when its headers cannot be kept. */
export function entryOf(drained: DrainedDeadLetter, options: ResolvedIngest): Entry {
  const { delivery } = drained
  const { source, masks, maskedHeaders, isPreviewing, extract } = options
  const isParsed = isPreviewing || extract.size > 0
  const body = isParsed ? parsedBody(delivery.bytes) : undefined
  const last = lastAttempt(drained)
  const sha256 = sha256Of(delivery.bytes)
  const { id: messageId, cycle } = delivery
  return {
    drained,
    sha256,
    hash: identityHash({ source, messageId, cycle: cycle.number, sha256 }),
    wire: encodeWire(drained),
    saidAt: momentOf(cycle.firstFailedAt) ?? momentOf(cycle.history[0]?.at),
    last,
    group: groupOf(source, last),
    headers: readableHeaders(delivery.headers, maskedHeaders),
    history: historyOf(cycle.history),
    preview: isPreviewing && body !== undefined ? previewOf(body, masks) : undefined,
    extracted: body === undefined ? [] : extractedFrom(body, extract),
  }
}

/** What it failed with last. One without a history is classed and signed by its reason, with the same rules. */
function lastAttempt({ delivery, reason }: DrainedDeadLetter): AttemptRecord {
  const { history, firstFailedAt, attempts } = delivery.cycle
  const told = { type: undefined, message: reason, stack: undefined, at: firstFailedAt, attempts }
  return (history.at(-1) ?? cycleOfTold(told).history[0]) as AttemptRecord
}

function groupOf(source: string, last: AttemptRecord): NewGroup {
  const signature = storable(last.signature, NAME_MAX)
  return {
    id: groupId(source, signature),
    signature,
    // The version stands before the dash.
    algorithm: Number(/^(\d{1,4})-/.exec(signature)?.[1] ?? 0),
    class: last.class,
    code: storableOrNull(last.code, NAME_MAX),
    sample: storable(last.message, MESSAGE_MAX),
  }
}

/** 20 attempts: twice what a policy keeps by default. */
const HISTORY_MAX = 20

function historyOf(history: readonly AttemptRecord[]): string {
  const kept = history.slice(-HISTORY_MAX).map((one) => ({
    number: one.number,
    at: one.at,
    class: one.class,
    signature: storable(one.signature, NAME_MAX),
    code: storableOrNull(one.code, NAME_MAX),
    message: storable(one.message, MESSAGE_MAX),
  }))
  return JSON.stringify(kept)
}

/** The same with its id, once it is known when it failed. */
export function dated(entry: Entry, seenAt: number): DatedEntry {
  const firstFailedAt = entry.saidAt ?? seenAt
  // A clock that went back between two attempts must not put the last before the first.
  const lastFailedAt = Math.max(firstFailedAt, momentOf(entry.last.at) ?? firstFailedAt)
  return { ...entry, id: deadLetterId(firstFailedAt, entry.hash), firstFailedAt, lastFailedAt }
}

/** What an entry is without its moment. */
export const identityOf = ({ hash }: Entry): string => uuidOf(hash)

/** A header may claim any number; the column is an integer. */
const COUNT_MAX = 1_000_000

export const bounded = (count: number): number =>
  Number.isFinite(count) ? Math.min(COUNT_MAX, Math.max(0, Math.trunc(count))) : 0
