import type { DrainedDeadLetter } from '@redrive/runtime'
import type { Run } from '../database.ts'
import { MESSAGE_MAX, NAME_MAX, storable } from '../text.ts'
import { identityHash, sha256Of, uuidOf } from './identity.ts'
import type { ResolvedIngest } from './options.ts'

/** 64 KiB: enough to see what it was. */
const HEAD_BYTES = 65_536

/** What cannot be kept as a dead letter. */
export interface Refused {
  readonly identity: string
  readonly reason: string
  readonly messageId: string
  readonly bytes: number
  readonly sha256: Buffer
  readonly head: Uint8Array
}

export function refusedOf(
  { delivery }: DrainedDeadLetter,
  { source }: ResolvedIngest,
  reason: string,
): Refused {
  const { id: messageId, bytes, cycle } = delivery
  const sha256 = sha256Of(bytes)
  return {
    identity: uuidOf(identityHash({ source, messageId, cycle: cycle.number, sha256 })),
    reason: storable(reason, MESSAGE_MAX),
    messageId: storable(messageId, NAME_MAX),
    bytes: bytes.length,
    sha256,
    head: bytes.subarray(0, HEAD_BYTES),
  }
}

const INSERT = `
insert into redrive_catalog.ingest_quarantine (identity, source_id, reason, message_id, payload_bytes, sha256, head)
  select r.identity, $1, r.reason, r.message_id, r.bytes, r.sha256, r.head
    from unnest($2::uuid[], $3::text[], $4::text[], $5::bigint[], $6::bytea[], $7::bytea[])
      as r (identity, reason, message_id, bytes, sha256, head)
    order by r.identity
  on conflict (identity) do nothing`

export async function storeRefused(
  run: Run,
  sourceId: number,
  refused: readonly Refused[],
): Promise<void> {
  if (refused.length === 0) return
  await run(INSERT, [
    sourceId,
    refused.map(({ identity }) => identity),
    refused.map(({ reason }) => reason),
    refused.map(({ messageId }) => messageId),
    refused.map(({ bytes }) => bytes),
    refused.map(({ sha256 }) => sha256),
    refused.map(({ head }) => Buffer.from(head)),
  ])
}
