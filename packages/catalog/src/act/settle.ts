import { RedriveError } from '@redrive/core'
import type { Pool } from 'pg'
import { explaining, inTransaction, query } from '../database.ts'
import { isId } from '../read/check.ts'
import { type Change, changeStatus } from '../status.ts'
import { NAME_MAX, storable } from '../text.ts'

/** Which dead letters: by name, or all of a group whose ingest began before this moment. */
export type Selection =
  | { readonly ids: readonly string[]; readonly group?: never }
  | { readonly group: string; readonly ids?: never }

export interface Settled {
  readonly changed: number
  /** Named, but not in the status that can be changed, or not there. */
  readonly skipped: readonly string[]
}

/** 1,000 by name: what people choose by hand. */
const IDS_MAX = 1_000
/** 1,000 in one transaction: others wait for the group's counts that long. */
const AT_ONCE = 1_000

const DISCARD = { from: ['open'], to: 'discarded', opens: -1 } as const
const RESTORE = { from: ['discarded'], to: 'open', opens: 1 } as const

/** Nobody has to deal with them any more; they stay until retention, and can be restored until then. */
export const discard = (pool: Pool, selection: Selection, by: string): Promise<Settled> =>
  settle(pool, DISCARD, selection, by)

export const restore = (pool: Pool, selection: Selection, by: string): Promise<Settled> =>
  settle(pool, RESTORE, selection, by)

async function settle(
  pool: Pool,
  change: Change,
  selection: Selection,
  by: string,
): Promise<Settled> {
  check(selection, by)
  const who = storable(by, NAME_MAX)
  const { ids, group } = selection
  return explaining(async () =>
    ids === undefined
      ? { changed: await settleGroup(pool, change, group, who), skipped: [] }
      : settleNamed(pool, change, ids, who),
  )
}

function check(selection: Selection, by: string): void {
  const { ids, group, ...others } = selection
  // Refused and not ignored: an ignored filter would change more than the caller expects.
  const problems = Object.keys(others).map(
    (name) => `"${name}" cannot select dead letters here. Use "ids" or "group".`,
  )
  const isFit = ids === undefined ? isId(group) : ids.length <= IDS_MAX && ids.every(isId)
  if (!isFit) problems.push(`expected ids, at most ${IDS_MAX}, or the id of a group`)
  if (by === '') problems.push('by: expected who does it')
  if (problems.length === 0) return
  throw new RedriveError('POLICY_INVALID', problems.join('\n'), { problems })
}

const BY_ID = `
select id from redrive_catalog.dead_letter where id = any($1::uuid[]) and status = $2
  order by id for no key update`

async function settleNamed(
  pool: Pool,
  change: Change,
  ids: readonly string[],
  by: string,
): Promise<Settled> {
  const changed = await inTransaction(pool, async (run) => {
    const found = await run<{ id: string }>(BY_ID, [ids, change.from[0]])
    await changeStatus(run, change, idsOf(found), by)
    return new Set(found.map(({ id }) => id))
  })
  return { changed: changed.size, skipped: ids.filter((id) => !changed.has(id)) }
}

const idsOf = (found: readonly { readonly id: string }[]) => found.map(({ id }) => id)

/** Everything that was there when it began, and was not changed since: or it would meet its own changes. */
const BY_GROUP = `
select id from redrive_catalog.dead_letter
  where group_id = $1::uuid and status = $2 and ingested_at <= $3 and coalesce(settled_at, '-infinity') <= $3
  order by last_failed_at desc, id desc limit ${AT_ONCE} for no key update skip locked`

async function settleGroup(pool: Pool, change: Change, group: string, by: string): Promise<number> {
  // As text: a Date would lose its microseconds, and with them what was ingested in the last of them.
  const { rows } = await query<{ now: string }>(pool, 'select clock_timestamp()::text as now')
  let total = 0
  for (let changed = AT_ONCE; changed === AT_ONCE; total += changed) {
    changed = await inTransaction(pool, async (run) => {
      const found = await run<{ id: string }>(BY_GROUP, [group, change.from[0], rows[0]?.now])
      await changeStatus(run, change, idsOf(found), by)
      return found.length
    })
  }
  return total
}
