import { cycleFromReport, type FailureRecord } from '@redrive/core'
import { OWN_SIGNATURE, signatureParts } from '@redrive/core/internal'
import type { DrainedDeadLetter } from '@redrive/runtime'
import { MESSAGE_MAX, NAME_MAX, storable, storableOrNull } from '../text.ts'
import { encodeDeadLetter } from '../dead-letter-codec.ts'
import { readableHeaders } from './headers.ts'
import { deadLetterId, groupId, identityHash, momentOf, sha256Of, uuidOf } from './identity.ts'
import type { ResolvedIngest } from './options.ts'
import type { NewGroup } from './new-group.ts'
import type { Traits } from '../regrouping/match.ts'
import { namedGroup, ruleFor } from '../regrouping/named.ts'
import { extractedFrom, parsedBody, previewOf } from './preview.ts'

export interface KnownSource {
  readonly id: number
  readonly name: string
  /** Statements that every transaction of its ingest starts with. */
  readonly settings: string
  /** Whether its dead letters are put back into the broker, so that nothing is ingested. */
  readonly isStopped: boolean
}

/** A dead letter that is about to be stored. */
export interface Entry {
  readonly drained: DrainedDeadLetter
  readonly hash: Buffer
  readonly sha256: Buffer
  readonly wire: Buffer
  /** The first failure according to the message. Undefined: the message has no valid time. */
  readonly saidAt: number | undefined
  readonly last: FailureRecord
  readonly group: NewGroup
  readonly headers: string
  readonly history: string
  readonly preview: string | undefined
  /** Values for searches. */
  readonly extracted: readonly (readonly [name: string, value: string])[]
}

/** An entry with a known first failure time, and so with an id. */
export interface DatedEntry extends Entry {
  readonly id: string
  readonly firstFailedAt: number
  readonly lastFailedAt: number
}

/** Reads everything to store from a dead letter. Throws if its headers cannot be encoded. */
export function entryOf(drained: DrainedDeadLetter, options: ResolvedIngest): Entry {
  const { delivery } = drained
  const { source, masks, maskedHeaders, isPreviewing, extract } = options
  const isParsed = isPreviewing || extract.size > 0
  const body = isParsed ? parsedBody(delivery.bytes) : undefined
  const last = lastFailure(drained)
  const sha256 = sha256Of(delivery.bytes)
  const { id: messageId, cycle } = delivery
  return {
    drained,
    sha256,
    hash: identityHash({ source, messageId, cycle: cycle.number, sha256 }),
    wire: encodeDeadLetter(drained),
    saidAt: momentOf(cycle.firstFailedAt) ?? momentOf(cycle.history[0]?.at),
    last,
    group: namedOr(groupOf(source, last, drained), options, drained),
    headers: readableHeaders(delivery.headers, maskedHeaders),
    history: historyOf(cycle.history),
    preview: isPreviewing && body !== undefined ? previewOf(body, masks) : undefined,
    extracted: body === undefined ? [] : extractedFrom(body, extract),
  }
}

/** Returns the last failure. Without a history, the reason is classified and signed by the same rules. */
function lastFailure({ delivery, reason }: DrainedDeadLetter): FailureRecord {
  const { history, firstFailedAt, attempts } = delivery.cycle
  const report = { type: undefined, message: reason, stack: undefined, at: firstFailedAt, attempts }
  return (history.at(-1) ?? cycleFromReport(report).history[0]) as FailureRecord
}

function groupOf(
  source: string,
  last: FailureRecord,
  { handler, stack }: DrainedDeadLetter,
): NewGroup {
  const signature = storable(last.signature, NAME_MAX)
  // The version is the part before the dash.
  const algorithm = Number(/^(\d{1,4})-/.exec(signature)?.[1] ?? 0)
  return {
    id: groupId(source, signature),
    signature,
    algorithm,
    class: last.class,
    code: storableOrNull(last.code, NAME_MAX),
    errorType: storableOrNull(last.type, NAME_MAX),
    // Signatures of Redrive without a version, such as that of a crash loop, are the same for all handlers.
    handler: algorithm === 0 && !isOwn(signature) ? null : storableOrNull(handler, NAME_MAX),
    frame: storableOrNull(frameOf(last, stack), NAME_MAX),
    sample: storable(last.message, MESSAGE_MAX),
  }
}

/** Returns the group by the first fingerprint rule that matches, or else the group by signature. */
function namedOr(
  group: NewGroup,
  { source, rules, handler }: ResolvedIngest,
  { delivery }: DrainedDeadLetter,
): NewGroup {
  if (rules.length === 0) return group
  const traits: Traits = {
    class: group.class,
    code: group.code,
    type: storableOrNull(delivery.type, NAME_MAX),
    errorType: storableOrNull(delivery.cycle.history.at(-1)?.type, NAME_MAX),
    handler: group.handler ?? handler ?? null,
    message: group.sample,
  }
  const rule = ruleFor(rules, traits)
  if (rule === undefined) return group
  return namedGroup(source, rule.group, { ...traits, ownHandler: group.handler })
}

/** Whether the consumer gave the signature. */
const isOwn = (signature: string) => signature.startsWith(OWN_SIGNATURE)

/** Returns the frame of the signature. Only unknown failures have one. */
function frameOf(last: FailureRecord, stack: string | undefined): string | undefined {
  if (last.class !== 'unknown') return undefined
  return signatureParts({ ...last, type: last.type ?? '', handler: '', stack }).frame
}

/** 20 failures: twice the default of a policy. */
const HISTORY_MAX = 20

function historyOf(history: readonly FailureRecord[]): string {
  const kept = history.slice(-HISTORY_MAX).map((one) => ({
    number: one.number,
    at: one.at,
    waitedMs: one.waitedMs,
    class: one.class,
    signature: storable(one.signature, NAME_MAX),
    code: storableOrNull(one.code, NAME_MAX),
    type: storableOrNull(one.type, NAME_MAX),
    message: storable(one.message, MESSAGE_MAX),
    counted: one.counted,
    ...(one.trace === undefined ? {} : { trace: storable(one.trace, NAME_MAX) }),
  }))
  return JSON.stringify(kept)
}

/** Returns the entry with its id, which includes the first failure time. */
export function dated(entry: Entry, seenAt: number): DatedEntry {
  const firstFailedAt = entry.saidAt ?? seenAt
  // If a clock was set back between two attempts, the last failure must still not be before the first.
  const lastFailedAt = Math.max(firstFailedAt, momentOf(entry.last.at) ?? firstFailedAt)
  return { ...entry, id: deadLetterId(firstFailedAt, entry.hash), firstFailedAt, lastFailedAt }
}

/** Returns the identity of an entry, which does not include a time. */
export const identityOf = ({ hash }: Entry): string => uuidOf(hash)

/** A limit for numbers from headers, because a header can contain any number and the column is an integer. */
const COUNT_MAX = 1_000_000

export const bounded = (count: number): number =>
  Number.isFinite(count) ? Math.min(COUNT_MAX, Math.max(0, Math.trunc(count))) : 0
