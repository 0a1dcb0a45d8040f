import { RedriveError } from '@redrive/core'
import type { Pool } from 'pg'
import { explaining, inTransaction, query, type RunSql } from '../database.ts'
import { isId } from '../read/check.ts'
import { type Change, changeStatus } from '../status.ts'
import { NAME_MAX, storable } from '../text.ts'
import {
  CONFIRMED_WHILE_DISCARDED,
  LOCK_BY_ID,
  LOCK_OF_GROUP,
  NOW,
  PARTS_OF_GROUP,
} from './statements.ts'

/** A selection of dead letters: by id, or all of a group that exist when the call starts. */
export type Selection =
  | { readonly ids: readonly string[]; readonly group?: never }
  | { readonly group: string; readonly ids?: never }

export interface DiscardResult {
  readonly changed: number
  /** Selected ids that do not exist or do not have the required status. */
  readonly skipped: readonly string[]
}

/** 1,000 ids: more than users select by hand. */
const IDS_MAX = 1_000
/** 1,000 rows per transaction: it bounds how long other writers wait for the counts of the group. */
const BATCH_SIZE = 1_000

const DISCARD = { from: ['open'], to: 'discarded' } as const
const RESTORE = { from: ['discarded'], to: 'open' } as const

/** Discards dead letters: they no longer count as open. They can be restored until retention deletes them. */
export const discard = (pool: Pool, selection: Selection, by: string): Promise<DiscardResult> =>
  settle(pool, DISCARD, selection, by)

export const restore = (pool: Pool, selection: Selection, by: string): Promise<DiscardResult> =>
  settle(pool, RESTORE, selection, by)

/**
 * Changes dead letters that the caller has locked. If a consumer confirmed the replay of one while it was discarded, a
 * restore makes it resolved: it took effect, and another replay would repeat the effect.
 */
export async function changeLocked(
  run: RunSql,
  change: Change,
  ids: readonly string[],
  by: string,
): Promise<void> {
  const confirmed =
    change.to === 'open' ? await run<{ id: string }>(CONFIRMED_WHILE_DISCARDED, [ids]) : []
  const done = new Set(idsOf(confirmed))
  await changeStatus(run, { ...change, to: 'resolved' }, [...done], BY_CONSUMER)
  await changeStatus(
    run,
    change,
    ids.filter((id) => !done.has(id)),
    by,
  )
}

const BY_CONSUMER = 'consumer'

async function settle(
  pool: Pool,
  change: Change,
  selection: Selection,
  by: string,
): Promise<DiscardResult> {
  check(selection, by)
  const actor = storable(by, NAME_MAX)
  const { ids, group } = selection
  return explaining(async () =>
    ids === undefined
      ? { changed: await settleGroup(pool, change, group, actor), skipped: [] }
      : settleIds(pool, change, ids, actor),
  )
}

function check(selection: Selection, by: string): void {
  const { ids, group, ...others } = selection
  // Unknown fields are rejected. If a filter were ignored, more would change than the caller expects.
  const problems = Object.keys(others).map(
    (name) => `"${name}" cannot select dead letters here. Use "ids" or "group".`,
  )
  const isValid = ids === undefined ? isId(group) : ids.length <= IDS_MAX && ids.every(isId)
  if (!isValid) problems.push(`expected "ids" (at most ${IDS_MAX}) or the id of a "group"`)
  if (by === '') problems.push('by: expected the name of the user')
  if (problems.length === 0) return
  throw new RedriveError('POLICY_INVALID', problems.join('\n'), { problems })
}

async function settleIds(
  pool: Pool,
  change: Change,
  ids: readonly string[],
  by: string,
): Promise<DiscardResult> {
  const changed = await inTransaction(pool, async (run) => {
    const found = await run<{ id: string }>(LOCK_BY_ID, [ids, change.from[0]])
    await changeLocked(run, change, idsOf(found), by)
    return new Set(found.map(({ id }) => id))
  })
  return { changed: changed.size, skipped: ids.filter((id) => !changed.has(id)) }
}

const idsOf = (found: readonly { readonly id: string }[]) => found.map(({ id }) => id)

async function settleGroup(pool: Pool, change: Change, group: string, by: string): Promise<number> {
  const { rows } = await query<{ now: string }>(pool, NOW)
  const parts = await query<{ id: string }>(pool, PARTS_OF_GROUP, [[group]])
  let total = 0
  for (const { id } of parts.rows) total += await settlePart(pool, change, id, by, rows[0]?.now)
  return total
}

/** Changes the dead letters of one part, batch by batch. Each batch reads one range of an index. */
async function settlePart(
  pool: Pool,
  change: Change,
  part: string,
  by: string,
  startedAt: string | undefined,
): Promise<number> {
  let total = 0
  for (let changed = BATCH_SIZE; changed === BATCH_SIZE; total += changed) {
    changed = await inTransaction(pool, async (run) => {
      const values = [part, change.from[0], startedAt, BATCH_SIZE]
      const found = await run<{ id: string }>(LOCK_OF_GROUP, values)
      await changeLocked(run, change, idsOf(found), by)
      return found.length
    })
  }
  return total
}
