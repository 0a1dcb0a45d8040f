import type { RunSql } from './database.ts'
import type { Status } from './read/query.ts'
import { CHANGE_STATUS, COUNT_STATUSES, LOCK_GROUPS } from './statements.ts'

/** The statuses that a group counts, in the order of the parameters of `COUNT_STATUSES`. */
const COUNTED = ['open', 'replaying', 'unknown'] as const satisfies readonly Status[]

/** The statuses of dead letters without a final outcome. */
export const LIVE: readonly Status[] = COUNTED

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
  await countMoves(
    run,
    changed.map(({ group_id: group, was }) => ({ group, was, becomes: to })),
  )
}

/** A dead letter of a group that has another status now. */
export interface Move {
  readonly group: string
  /** The status before. Undefined: it was not in this group. */
  readonly was?: Status
  /** The status now. Undefined: it is not in this group any more. */
  readonly becomes?: Status
}

/** Changes the counts of the groups. */
export async function countMoves(run: RunSql, moves: readonly Move[]): Promise<void> {
  const groups = Map.groupBy(moves, ({ group }) => group)
  const deltas = COUNTED.map((status) =>
    [...groups.values()].map(
      (all) =>
        all.filter(({ becomes }) => becomes === status).length -
        all.filter(({ was }) => was === status).length,
    ),
  )
  if (deltas.every((column) => column.every((delta) => delta === 0))) return
  await run(LOCK_GROUPS, [[...groups.keys()]])
  await run(COUNT_STATUSES, [[...groups.keys()], ...deltas])
}
