import type { DeadLetterSource, ReplayConfirmation } from '@redrive/runtime'
import type { Pool } from 'pg'
import { explaining, inTransaction, type RunSql } from '../../database.ts'
import { isId } from '../../read/check.ts'
import { NAME_MAX, storable } from '../../text.ts'
import { cancelQueued, conflict } from '../run/lifecycle.ts'
import { expired, notReturned, reopen, resolved, unknown } from '../run/status-changes.ts'
import type { ReplayDeps } from '../run/context.ts'
import { replayIdIn } from '../signed-id.ts'
import { isSignedBy, type SignedItem } from './signed-item.ts'
import {
  CONFIRMED_ITEMS,
  COUNT_MISMATCHES,
  LOCK_DEAD_LETTERS,
  LOCK_ITEMS,
  CONFIRM,
  OVERDUE,
  SOURCE_CONFIRMS,
  SET_OUTCOME,
  LEFT_BEHIND,
  UNDONE,
  DONE,
  EXPIRE_PLANS,
  DECIDE,
} from './statements.ts'

/** 500 rows per transaction, which then takes milliseconds. */
const BATCH_SIZE = 500

export interface ConfirmResult {
  readonly resolved: number
  readonly expired: number
}

/** Stores the confirmations of the consumers, then releases them. `name` is the source's name in the catalog. */
export async function confirm(
  pool: Pool,
  name: string,
  source: DeadLetterSource,
): Promise<ConfirmResult> {
  const total = { resolved: 0, expired: 0 }
  for (let count = BATCH_SIZE; count === BATCH_SIZE; ) {
    const batch = await source.confirmations({ limit: BATCH_SIZE })
    count = batch.confirmations.length
    try {
      const done = await storeConfirmations(pool, name, batch.confirmations)
      total.resolved += done.resolved
      total.expired += done.expired
    } catch (error) {
      await batch.abandon()
      throw error
    }
    await batch.release()
  }
  return total
}

/** The states without an outcome. */
const UNSETTLED = ['queued', 'claimed', 'publishing', 'published', 'unknown', 'not_returned']
/**
 * The states that a confirmation can change. Success wins over a copy that failed. A dropped late copy does not
 * change an item that failed again or whose outcome a user has set.
 */
const BEFORE = { resolved: [...UNSETTLED, 'failed_again', 'expired'], expired: UNSETTLED }
async function storeConfirmations(
  pool: Pool,
  name: string,
  confirmations: readonly ReplayConfirmation[],
): Promise<ConfirmResult> {
  const ids = confirmations.flatMap(({ replayId }) => replayIdIn(replayId) ?? [])
  if (ids.length === 0) return { resolved: 0, expired: 0 }
  return inTransaction(pool, async (run) => {
    const items = await run<ConfirmedItem>(CONFIRMED_ITEMS, [ids])
    const { valid, mismatched } = matched(name, items, confirmations)
    await run(LOCK_DEAD_LETTERS, [valid.map(({ item }) => item.dead_letter_id)])
    await run(LOCK_ITEMS, [valid.map(({ item }) => item.replay_id)])
    const dropped = valid.filter(({ outcome }) => outcome === 'dropped')
    const handled = valid.filter(({ outcome }) => outcome !== 'dropped')
    const gone = await settled(run, name, dropped, 'expired')
    const done = await settled(run, name, handled, 'resolved')
    await expired(run, gone, BY_CONSUMER)
    await resolved(run, done, BY_CONSUMER)
    if (valid.length > 0) await run(SOURCE_CONFIRMS, [name])
    // After the dead letters, as in an ingest: the same order of locks prevents a deadlock.
    if (mismatched > 0) await run(COUNT_MISMATCHES, [name, mismatched])
    return { resolved: done.length, expired: gone.length }
  })
}

interface ConfirmedItem extends SignedItem {
  readonly source: string
}

interface ValidConfirmation {
  readonly item: SignedItem
  readonly outcome: ReplayConfirmation['outcome']
}

/**
 * Returns the confirmations that belong to an item of this source, and the number of confirmations that name an item
 * but do not belong to it. A confirmation without an item is ignored: retention may have deleted the run.
 */
function matched(
  name: string,
  items: readonly ConfirmedItem[],
  confirmations: readonly ReplayConfirmation[],
): { readonly valid: readonly ValidConfirmation[]; readonly mismatched: number } {
  const byReplay = new Map(items.map((item) => [item.replay_id, item]))
  const valid: ValidConfirmation[] = []
  let mismatched = 0
  for (const { replayId, outcome } of confirmations) {
    const item = byReplay.get(replayIdIn(replayId) ?? '')
    // Nothing was published, so nothing can be confirmed. After a restore of the database this is not a forgery.
    if (item === undefined || item.publishes === 0) continue
    if (item.source === name && isSignedBy(item, replayId)) valid.push({ item, outcome })
    else mismatched += 1
  }
  return { valid, mismatched }
}

const BY_CONSUMER = 'consumer'

async function settled(
  run: RunSql,
  name: string,
  confirmations: readonly ValidConfirmation[],
  state: 'resolved' | 'expired',
): Promise<readonly string[]> {
  if (confirmations.length === 0) return []
  const ids = confirmations.map(({ item }) => item.replay_id)
  const values = [ids, state, 'confirmation', BEFORE[state], name]
  const rows = await run<{ id: string }>(CONFIRM, values)
  return rows.map(({ id }) => id)
}

interface OverdueItem {
  readonly id: string
  readonly replay_id: string
  readonly key: string | null
  /** Whether the consumers confirm nothing. */
  readonly is_unproven: boolean | null
  readonly timeout_ms: number
}

const WITH_ITS_RUN = { reason: 'cancelled with its run', by: 'redrive' }

/** Returns the business keys that were handled, out of the given ones. */
export type HandledKeys = (keys: readonly string[]) => Promise<ReadonlySet<string>>

export async function sweep(
  { pool }: ReplayDeps,
  source: string,
  handled: HandledKeys | undefined,
): Promise<void> {
  await pool.query(LEFT_BEHIND, [source])
  const { rows: undone } = await pool.query<{ id: string }>(UNDONE, [source])
  for (const { id } of undone) {
    await inTransaction(pool, (run) => cancelQueued(run, id, WITH_ITS_RUN))
  }
  for (let count = BATCH_SIZE; count === BATCH_SIZE; ) {
    const { rows } = await pool.query<OverdueItem>(OVERDUE, [source, BATCH_SIZE])
    count = rows.length
    if (count > 0) await settleOverdue(pool, rows, handled)
  }
  await pool.query(DONE, [source])
  await pool.query(EXPIRE_PLANS, [source])
}

/**
 * Checks the inbox once more. Items that it does not contain are unknown until a user sets their outcome. If the
 * consumers confirm nothing, they are not returned instead.
 */
async function settleOverdue(
  pool: Pool,
  overdue: readonly OverdueItem[],
  handled: HandledKeys | undefined,
): Promise<void> {
  const keys = overdue.flatMap(({ key }) => (key === null ? [] : [key]))
  const known = (await handled?.(keys)) ?? new Set<string>()
  const isConfirmed = ({ key }: OverdueItem) => key !== null && known.has(key)
  const confirmed = overdue.filter(isConfirmed).map(({ replay_id }) => replay_id)
  const others = overdue.filter((one) => !isConfirmed(one))
  const unproven = others.filter(({ is_unproven }) => is_unproven === true)
  const unconfirmed = others.filter(({ is_unproven }) => is_unproven !== true)
  await inTransaction(pool, async (run) => {
    await run(LOCK_DEAD_LETTERS, [overdue.map(({ id }) => id)])
    const done = await run<{ id: string }>(SET_OUTCOME, [confirmed, 'resolved', 'inbox', null])
    const why = 'no confirmation and no failure arrived in time'
    const open = await run<{ id: string }>(SET_OUTCOME, [
      unconfirmed.map(({ replay_id }) => replay_id),
      'unknown',
      null,
      why,
    ])
    await unknown(
      run,
      open.map(({ id }) => id),
      BY_CONSUMER,
    )
    // Each time of a run separately, because the reason contains it.
    for (const [timeoutMs, items] of Map.groupBy(unproven, ({ timeout_ms }) => timeout_ms)) {
      const gone = await run<{ id: string }>(SET_OUTCOME, [
        items.map(({ replay_id }) => replay_id),
        'not_returned',
        null,
        `not returned within ${durationText(timeoutMs)}`,
      ])
      await notReturned(
        run,
        gone.map(({ id }) => id),
        'redrive',
      )
    }
    await resolved(
      run,
      done.map(({ id }) => id),
      'inbox',
    )
  })
}

const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1_000],
] as const

/** Returns a duration in its largest whole unit, such as `5 min`. */
function durationText(ms: number): string {
  const [unit, size] = UNITS.find(([, one]) => ms % one === 0) ?? (['ms', 1] as const)
  return `${ms / size} ${unit}`
}

export interface OutcomeResult {
  readonly changed: number
  /** Selected ids whose outcome is neither unknown nor not returned. */
  readonly skipped: readonly string[]
}

/** Sets outcomes that are unknown or not returned. `resolved`: the replay took effect. `open`: it did not and can be repeated. */
export async function setOutcome(
  pool: Pool,
  ids: readonly string[],
  { as, by }: { readonly as: 'resolved' | 'open'; readonly by: string },
): Promise<OutcomeResult> {
  if (!ids.every(isId) || by === '' || !['resolved', 'open'].includes(as)) {
    throw conflict(
      'Expected the ids of dead letters, "as" with the value "resolved" or "open", and "by" with the name of the user.',
    )
  }
  const actor = storable(by, NAME_MAX)
  const changed = await explaining(() =>
    inTransaction(pool, async (run) => {
      await run(LOCK_DEAD_LETTERS, [ids])
      const isDone = as === 'resolved'
      const values = [ids, isDone ? 'resolved' : 'expired', isDone ? `person: ${actor}` : null]
      const rows = await run<{ id: string }>(DECIDE, [
        ...values,
        isDone ? null : `reopened by ${actor}`,
      ])
      const found = rows.map(({ id }) => id)
      await (isDone ? resolved(run, found, actor) : reopen(run, found, actor))
      return new Set(found)
    }),
  )
  return { changed: changed.size, skipped: ids.filter((id) => !changed.has(id)) }
}
