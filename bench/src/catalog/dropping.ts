// Measures how long the deletion of one day with all its dead letters takes.
import type { Filled } from './filled.ts'

const OLDEST = `
select day::text as day, count::integer as count from redrive_catalog.source_day
  where expired_at is null order by day limit 1`

/** Runs the complete maintenance, with one expired day. */
export async function dropOldest({
  pool,
  made,
}: Filled): Promise<{ readonly rows: number; readonly ms: number }> {
  const { rows } = await pool.query<{ day: string; count: number }>(OLDEST)
  const [oldest] = rows
  await pool.query(
    `update redrive_catalog.source_day set last_ingested_at = now() - interval '15 days' where day = $1`,
    [oldest?.day],
  )
  const beganAt = performance.now()
  const { dropped } = await made.maintain()
  const ms = performance.now() - beganAt
  if (dropped !== 1) throw new Error(`Maintenance dropped ${dropped} days instead of one.`)
  return { rows: oldest?.count ?? 0, ms }
}
