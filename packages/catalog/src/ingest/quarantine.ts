import type { DrainedDeadLetter } from '@redrive/runtime'
import type { RunSql } from '../database.ts'
import { MESSAGE_MAX, NAME_MAX, storable } from '../text.ts'
import { identityHash, sha256Of, uuidOf } from './identity.ts'
import type { ResolvedIngest } from './options.ts'
import { INSERT_QUARANTINED } from './statements.ts'

/** 64 KiB: enough to recognise the message. */
const HEAD_BYTES = 65_536

/** A message that cannot be stored as a dead letter. */
export interface RejectedDeadLetter {
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
): RejectedDeadLetter {
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

export async function storeRefused(
  run: RunSql,
  sourceId: number,
  refused: readonly RejectedDeadLetter[],
): Promise<void> {
  if (refused.length === 0) return
  await run(INSERT_QUARANTINED, [
    sourceId,
    refused.map(({ identity }) => identity),
    refused.map(({ reason }) => reason),
    refused.map(({ messageId }) => messageId),
    refused.map(({ bytes }) => bytes),
    refused.map(({ sha256 }) => sha256),
    refused.map(({ head }) => Buffer.from(head)),
  ])
}
