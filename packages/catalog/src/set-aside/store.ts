import type { DrainedDeadLetter } from '@redrive/runtime'
import type { Copy, RunSql } from '../database.ts'
import type { PayloadKeys } from '../encryption.ts'
import { identityHash, sha256Of, uuidOf } from '../ingest/identity.ts'
import { storeParts } from '../ingest/payloads.ts'
import { MESSAGE_MAX, NAME_MAX, storable, storableOrNull } from '../text.ts'
import { encodeAny, encodeMessage } from './codec.ts'
import { INSERT_SET_ASIDE } from './statements.ts'

/** Why a message was set aside. */
export type SetAsideReason =
  /** Its body is larger than `maxPayloadBytes`. */
  | 'body_too_large'
  /** The client of the broker cannot publish its headers, so it could not be replayed. RabbitMQ: more than 64 KiB. */
  | 'headers_not_publishable'
  /** Its headers are nested too deeply, or contain a value that the catalog cannot store. */
  | 'headers_not_storable'
  /** Its headers made a reader fail. */
  | 'unreadable'
  /** The database rejected a value. */
  | 'rejected_by_database'

/** A message that is about to be set aside. */
export interface RejectedMessage {
  readonly drained: DrainedDeadLetter
  readonly sha256: Buffer
  readonly id: string
  readonly wire: Buffer
  readonly reason: SetAsideReason
  readonly explanation: string
}

export function rejectedOf(
  drained: DrainedDeadLetter,
  source: string,
  reason: SetAsideReason,
  explanation: string,
): RejectedMessage {
  const { id: messageId, bytes, cycle, headers } = drained.delivery
  const sha256 = sha256Of(bytes)
  // With the headers: two messages with the same id and body may differ only in these.
  const content = sha256Of(Buffer.concat([sha256, sha256Of(encodeAny(headers))]))
  const hash = identityHash({ source, messageId, cycle: cycle.number, sha256: content })
  const wire = encodeMessage(drained)
  return { drained, sha256, id: uuidOf(hash), wire, reason, explanation }
}

/** Stores messages whole and returns the new ones. A message that is already stored is not added again. */
export async function storeSetAside(
  { run, copy }: { readonly run: RunSql; readonly copy: Copy },
  sourceId: number,
  rejected: readonly RejectedMessage[],
  keys: PayloadKeys | undefined,
): Promise<readonly RejectedMessage[]> {
  if (rejected.length === 0) return []
  const each = [...new Map(rejected.map((one) => [one.id, one])).values()]
  const deliveries = each.map(({ drained }) => drained.delivery)
  const stored = await run<{ id: string; is_new: boolean }>(INSERT_SET_ASIDE, [
    sourceId,
    each.map(({ id }) => id),
    each.map(({ reason }) => reason),
    each.map(({ explanation }) => storable(explanation, MESSAGE_MAX)),
    deliveries.map(({ id }) => storable(id, NAME_MAX)),
    deliveries.map(({ key }) => storable(key, NAME_MAX)),
    deliveries.map(({ type }) => storableOrNull(type, NAME_MAX)),
    each.map(({ drained }) => storable(drained.origin, NAME_MAX)),
    deliveries.map(({ contentType }) => storableOrNull(contentType, NAME_MAX)),
    deliveries.map(({ bytes }) => bytes.length),
    each.map(({ sha256 }) => sha256),
  ])
  const added = new Set(stored.map(({ id }) => id))
  const created = new Set(stored.filter(({ is_new }) => is_new).map(({ id }) => id))
  const fresh = each.filter(({ id }) => created.has(id))
  await storeParts(copy, SET_ASIDE_PAYLOAD, fresh, keys)
  return each.filter(({ id }) => added.has(id))
}

const SET_ASIDE_PAYLOAD = 'set_aside_payload (set_aside_id, part, bytes, wire, key_id, wrapped_key)'
