import { msSql } from '../read/sql.ts'

/** Ignores a source that no ingest has registered yet. The next check stores its result. */
export const STORE_CHECK: string = `
insert into redrive_catalog.source_check as c (source_id, process, checked_at, unreachable, missing, depth, lag)
  select s.id, $2, clock_timestamp(), $3, $4::text[], $5, $6 from redrive_catalog.source s where s.name = $1
  on conflict (source_id, process) do update set checked_at = excluded.checked_at, unreachable = excluded.unreachable,
    missing = excluded.missing, depth = excluded.depth, lag = excluded.lag`

/** A check older than one minute comes from a process that has stopped or hangs. */
export const RECENT_CHECKS: string = `
select s.name as source, c.process, ${msSql('c.checked_at')} as "checkedAt", c.unreachable, c.missing,
    c.depth::float8 as depth, c.lag::float8 as lag
  from redrive_catalog.source_check c join redrive_catalog.source s on s.id = c.source_id
  where c.checked_at > now() - interval '1 minute' order by s.name, c.process`
