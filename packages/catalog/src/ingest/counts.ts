import type { Run } from '../database.ts'
import { bounded, type DatedEntry } from './entry.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 3_600_000
const DAY_MS = 86_400_000

/** In the order of ids: two that update the same groups wait for each other, and never both. */
const LOCK = `
select from redrive_catalog.failure_group where id = any($1::uuid[]) order by id for no key update`

/**
 * A group that someone called resolved is open again. It is regressed when the failure is younger than
 * that; an older one only came late.
 */
const GROUPS = `
update redrive_catalog.failure_group g set
    count = g.count + a.count, open_count = g.open_count + a.count, attempts = g.attempts + a.attempts,
    first_seen_at = least(g.first_seen_at, to_timestamp(a.first_ms / 1000.0)),
    last_seen_at = greatest(g.last_seen_at, to_timestamp(a.last_ms / 1000.0)),
    is_regressed = g.is_regressed or coalesce(to_timestamp(a.last_ms / 1000.0) > g.resolved_at, false),
    regressed_at = case when to_timestamp(a.last_ms / 1000.0) > g.resolved_at then now() else g.regressed_at end,
    resolved_at = null,
    state = case g.state when 'resolved' then 'open' else g.state end
  from unnest($1::uuid[], $2::integer[], $3::bigint[], $4::bigint[], $5::bigint[])
    as a (id, count, attempts, first_ms, last_ms)
  where g.id = a.id`

/** In any order: whoever comes here has locked the groups. */
const rollup = (table: string, column: string) => `
insert into redrive_catalog.${table} as r (group_id, ${column}, count)
  select a.group_id, to_timestamp(a.at_ms / 1000.0), a.count
    from unnest($1::uuid[], $2::bigint[], $3::integer[]) as a (group_id, at_ms, count)
  on conflict (group_id, ${column}) do update set count = r.count + excluded.count`

const MINUTES = rollup('group_minute', 'minute')
const HOURS = rollup('group_hour', 'hour')

const DAYS = `
insert into redrive_catalog.source_day as s (source_id, day, count, last_ingested_at)
  select $1, a.day, a.count, now() from unnest($2::date[], $3::integer[]) as a (day, count) order by a.day
  on conflict (source_id, day) do update set count = s.count + excluded.count, last_ingested_at = now()`

/** Adds what was really added to every count that is kept: one row for each group and time, not for each dead letter. */
export async function addToCounts(
  run: Run,
  sourceId: number,
  added: readonly DatedEntry[],
): Promise<void> {
  if (added.length === 0) return
  const groups = Map.groupBy(added, ({ group }) => group.id)
  const ids = [...groups.keys()]
  const members = [...groups.values()]
  await run(LOCK, [ids])
  await run(GROUPS, [
    ids,
    members.map(({ length }) => length),
    members.map((all) =>
      all.reduce((sum, one) => sum + bounded(one.drained.delivery.cycle.attempts), 0),
    ),
    members.map((all) => Math.min(...all.map(({ lastFailedAt }) => lastFailedAt))),
    members.map((all) => Math.max(...all.map(({ lastFailedAt }) => lastFailedAt))),
  ])
  await run(MINUTES, perTime(added, MINUTE_MS))
  await run(HOURS, perTime(added, HOUR_MS))
  await run(DAYS, [sourceId, ...perDay(added)])
}

/** Parallel arrays: group, start of its span of time, how many. */
function perTime(added: readonly DatedEntry[], spanMs: number): readonly unknown[] {
  const found = Map.groupBy(
    added,
    ({ group, lastFailedAt }) => `${group.id} ${floor(lastFailedAt, spanMs)}`,
  )
  const keys = [...found.keys()].map((key) => key.split(' '))
  return [
    keys.map(([id]) => id),
    keys.map(([, at]) => at),
    [...found.values()].map(({ length }) => length),
  ]
}

const floor = (at: number, spanMs: number) => at - (at % spanMs)

function perDay(added: readonly DatedEntry[]): readonly unknown[] {
  const days = Map.groupBy(added, ({ firstFailedAt }) => floor(firstFailedAt, DAY_MS))
  return [
    [...days.keys()].map((at) => new Date(at).toISOString().slice(0, 10)),
    [...days.values()].map(({ length }) => length),
  ]
}
