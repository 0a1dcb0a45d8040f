import type { RunSql } from './database.ts'
import type { Status } from './read/query.ts'
import { CHANGE_STATUS, LOCK_GROUPS, COUNT_OPEN } from './statements.ts'

/** A change of status for dead letters that have one of the statuses in `from`. */
export interface Change {
  readonly from: readonly Status[]
  readonly to: Status
  /** What each changed dead letter adds to the open count of its group. */
  readonly opens: -1 | 0 | 1
}

/** Changes the statuses and the counts of the groups. The caller must have locked the rows in the order of ids. */
export async function changeStatus(
  run: RunSql,
  { from, to, opens }: Change,
  ids: readonly string[],
  by: string,
): Promise<void> {
  if (ids.length === 0) return
  const changed = await run<{ group_id: string }>(CHANGE_STATUS, [ids, to, by, from])
  if (opens === 0 || changed.length === 0) return
  const groups = Map.groupBy(changed, ({ group_id }) => group_id)
  const counts = [...groups.values()].map(({ length }) => length * opens)
  await run(LOCK_GROUPS, [[...groups.keys()]])
  await run(COUNT_OPEN, [[...groups.keys()], counts])
}
