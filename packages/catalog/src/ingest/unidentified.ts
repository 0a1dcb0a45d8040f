import { setTimeout as sleep } from 'node:timers/promises'
import type { DrainedDeadLetter } from '@redrive/runtime'
import type { Pool } from 'pg'
import type { RunSql } from '../database.ts'
import { encodeExactly, UnreadableHeaders } from '../dead-letter-codec.ts'
import { encodeAny } from '../set-aside/codec.ts'
import { sha256Of, uuidOf } from './identity.ts'
import { DELETE_RELEASED, HOLD_MS, IS_HELD, MATCH, HOLD } from './statements.ts'

/**
 * A message without a stable id gets another id each time it is drained. So each one is a separate dead letter,
 * unless the broker marks it as redelivered. A redelivered message is matched, one to one, with a row that has
 * the same content and is committed, but may not be released yet. Which of several identical messages it is does
 * not matter; only their number matters.
 *
 * The process that drained it before may still be about to release it. A match at that time would lose a dead
 * letter. The hold prevents this. If it is uncertain, the message is added a second time and never lost.
 */

/** Half the hold: a later release could come after a match, so the batch is returned instead. */
const RELEASE_MS = HOLD_MS / 2
/** 200 ms between two checks: this wait only happens after a crash. */
const POLL_MS = 200

/** A drained message with the hash of its body. */
interface HashedMessage {
  readonly drained: DrainedDeadLetter
  readonly sha256: Buffer
}

/** Returns a hash that identifies a message without a stable id by its content. */
function contentOf(source: string, { drained, sha256 }: HashedMessage): string {
  const { headers, cycle } = drained.delivery
  return uuidOf(sha256Of(Buffer.concat([encoded([source, cycle.number, headers]), sha256])))
}

/** Encodes any value, also headers that the catalog cannot store. */
function encoded(value: unknown): Buffer {
  try {
    return Buffer.from(encodeExactly(value))
  } catch (error) {
    if (!(error instanceof UnreadableHeaders)) throw error
    return encodeAny(value)
  }
}

const isRedelivered = ({ drained }: HashedMessage) => drained.identity === 'generated_redelivered'

/** Waits while another process may be about to release the same messages, at most for one hold. */
export async function whenLetGo(
  pool: Pool,
  source: string,
  entries: readonly HashedMessage[],
): Promise<void> {
  const contents = entries.filter(isRedelivered).map((entry) => contentOf(source, entry))
  if (contents.length === 0) return
  const endsAt = performance.now() + HOLD_MS
  while (performance.now() < endsAt) {
    const { rowCount } = await pool.query(IS_HELD, [contents])
    if (rowCount === 0) return
    await sleep(POLL_MS)
  }
}

/** Returns the entries without redelivered messages that the catalog already has. */
export async function withoutKnown<T extends HashedMessage>(
  run: RunSql,
  batch: string,
  source: string,
  entries: readonly T[],
): Promise<readonly T[]> {
  if (!entries.some(isRedelivered)) return entries
  const contents = entries.map((one) => (isRedelivered(one) ? contentOf(source, one) : undefined))
  const wanted = contents.filter((content) => content !== undefined)
  const matched = await run<{ content: string }>(MATCH, [batch, wanted])
  const known = Map.groupBy(matched, ({ content }) => content)
  return entries.filter((_, at) => known.get(contents[at] ?? '')?.pop() === undefined)
}

/** Records the added messages without a stable id until they are released. */
export async function holdUnnamed(
  run: RunSql,
  batch: string,
  source: string,
  added: readonly (HashedMessage & { readonly id: string })[],
): Promise<void> {
  const unidentified = added.filter(({ drained }) => drained.identity !== 'stable')
  if (unidentified.length === 0) return
  const contents = unidentified.map((entry) => contentOf(source, entry))
  await run(HOLD, [batch, unidentified.map(({ id }) => id), contents])
}

/** Whether the hold of a transaction that started at `beganAt` lasts long enough for its release. */
export const isHeld = (beganAt: number): boolean => performance.now() - beganAt < RELEASE_MS

/** Deletes the rows of a released batch. If this fails, maintenance deletes them later. */
export async function forgetReleased(pool: Pool, batch: string): Promise<void> {
  await pool.query(DELETE_RELEASED, [batch])
}
