import type { Run } from './database.ts'
import type { Status } from './read/query.ts'

/** A change of status, of those that have one of these. */
export interface Change {
  readonly from: readonly Status[]
  readonly to: Status
  /** What one of them adds to the open ones of its group. */
  readonly opens: -1 | 0 | 1
}

const UPDATE = `
update redrive_catalog.dead_letter set status = $2, version = version + 1, settled_at = clock_timestamp(), settled_by = $3
  where id = any($1::uuid[]) and status = any($4) returning group_id`
const LOCK = `
select from redrive_catalog.failure_group where id = any($1::uuid[]) order by id for no key update`
const COUNT = `
update redrive_catalog.failure_group g set open_count = g.open_count + c.count
  from unnest($1::uuid[], $2::integer[]) as c (id, count) where g.id = c.id`

/** Changes them and the counts of their groups. Whoever calls has locked them, in the order of their ids. */
export async function changeStatus(
  run: Run,
  { from, to, opens }: Change,
  ids: readonly string[],
  by: string,
): Promise<void> {
  if (ids.length === 0) return
  const changed = await run<{ group_id: string }>(UPDATE, [ids, to, by, from])
  if (opens === 0 || changed.length === 0) return
  const groups = Map.groupBy(changed, ({ group_id }) => group_id)
  const counts = [...groups.values()].map(({ length }) => length * opens)
  await run(LOCK, [[...groups.keys()]])
  await run(COUNT, [[...groups.keys()], counts])
}
