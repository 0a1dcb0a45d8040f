export const LOCK_AUTO_REPLAY: string = `
select auto_replay from redrive_catalog.source where name = $1 for no key update`

export const SET_AUTO_REPLAY: string = `
update redrive_catalog.source set auto_replay = $2 where name = $1 returning id`

/**
 * Selects groups for automatic replay: open, not muted, with transient failures, and without new failures for long enough.
 * A group contains the groups that are merged into it.
 */
export const DUE_GROUPS: string = `
with whole as (
  select coalesce(p.root_id, p.id) as id, sum(p.open_count) filter (where p.class = 'transient') as open,
      max(p.last_seen_at) as last_seen_at
    from redrive_catalog.failure_group p join redrive_catalog.source s on s.id = p.source_id
    where s.name = any($1::text[]) and s.auto_replay ? 'by' group by 1
)
select g.id, s.name as source, s.auto_replay ->> 'requestedBy' as requested_by, s.auto_replay ->> 'by' as by,
    (s.auto_replay ->> 'ratePerSecond')::float8 as rate,
    to_char(now(), 'YYYY-MM-DD HH24') as hour
  from whole w join redrive_catalog.failure_group g on g.id = w.id join redrive_catalog.source s on s.id = g.source_id
  where g.state = 'open' and w.open > 0
    and w.last_seen_at < now() - (s.auto_replay ->> 'quietMs')::float8 * interval '1 millisecond'
    and not exists (select from redrive_catalog.replay_run r where r.source_id = s.id and r.state in ('running', 'paused'))
  order by g.id limit 100`

export const STILL_DUE: string = `
select from redrive_catalog.source s join redrive_catalog.failure_group g on g.source_id = s.id
  where g.id = $1 and s.auto_replay ? 'by' and g.state = 'open' and g.root_id is null`
