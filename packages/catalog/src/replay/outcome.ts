import type { Run } from '../database.ts'

/** A dead letter and what becomes of it. */
const SETTLE = `
update redrive_catalog.dead_letter set status = $2, version = version + 1, settled_at = clock_timestamp(), settled_by = $3
  where id = any($1::uuid[]) and status = any($4) returning group_id`
const LOCK = `
select from redrive_catalog.failure_group where id = any($1::uuid[]) order by id for no key update`
const COUNT = `
update redrive_catalog.failure_group g set open_count = g.open_count + c.count
  from unnest($1::uuid[], $2::integer[]) as c (id, count) where g.id = c.id`

/** Those that someone still has to deal with. */
const LIVE: readonly string[] = ['open', 'replaying', 'unknown']

/** Whoever calls has locked them in the order of their ids. */
async function settle(
  run: Run,
  ids: readonly string[],
  by: string,
  { to, from, opens }: { to: string; from: readonly string[]; opens: 0 | -1 },
): Promise<void> {
  if (ids.length === 0) return
  const rows = await run<{ group_id: string }>(SETTLE, [ids, to, by, from])
  if (opens === 0 || rows.length === 0) return
  const groups = Map.groupBy(rows, ({ group_id }) => group_id)
  const counts = [...groups.values()].map(({ length }) => length * opens)
  await run(LOCK, [[...groups.keys()]])
  await run(COUNT, [[...groups.keys()], counts])
}

/** Its effect is proven. */
export const resolved = (run: Run, ids: readonly string[], by: string): Promise<void> =>
  settle(run, ids, by, { to: 'resolved', from: LIVE, opens: -1 })

/** It will never be handled. */
export const expired = (run: Run, ids: readonly string[], by: string): Promise<void> =>
  settle(run, ids, by, { to: 'expired', from: LIVE, opens: -1 })

/** Nobody can say. It still counts as open: someone has to deal with it. */
export const unknown = (run: Run, ids: readonly string[], by: string): Promise<void> =>
  settle(run, ids, by, { to: 'unknown', from: ['replaying'], opens: 0 })

/** Back to where it was. */
export const reopen = (run: Run, ids: readonly string[], by: string): Promise<void> =>
  settle(run, ids, by, { to: 'open', from: ['replaying', 'unknown'], opens: 0 })
