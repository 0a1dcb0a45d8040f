import type { RunSql } from './database.ts'
import type { Status } from './read/query.ts'
import { CHANGE_STATUS, LOCK_GROUPS, COUNT_OPEN } from './statements.ts'

/** The statuses that count as open. */
export const LIVE: readonly Status[] = ['open', 'replaying', 'unknown']

/** A change of status for dead letters that have one of the statuses in `from`. */
export interface Change {
  readonly from: readonly Status[]
  readonly to: Status
}

interface ChangedRow {
  readonly group_id: string
  /** The status before the change. */
  readonly was: Status
}

/** Changes the statuses and the counts of the groups. The caller must have locked the rows in the order of ids. */
export async function changeStatus(
  run: RunSql,
  { from, to }: Change,
  ids: readonly string[],
  by: string,
): Promise<void> {
  if (ids.length === 0) return
  const changed = await run<ChangedRow>(CHANGE_STATUS, [ids, to, by, from])
  const moved = changed.filter(({ was }) => LIVE.includes(was) !== LIVE.includes(to))
  if (moved.length === 0) return
  const opens = LIVE.includes(to) ? 1 : -1
  const groups = Map.groupBy(moved, ({ group_id }) => group_id)
  const counts = [...groups.values()].map(({ length }) => length * opens)
  await run(LOCK_GROUPS, [[...groups.keys()]])
  await run(COUNT_OPEN, [[...groups.keys()], counts])
}
