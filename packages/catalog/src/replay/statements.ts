export const SET_AUTO_REPLAY: string = `
update redrive_catalog.source set auto_replay = $2 where name = $1 returning id`

/** Selects groups for automatic replay: transient, open, not muted, and without new failures for long enough. */
export const DUE_GROUPS: string = `
select g.id, s.name as source, s.auto_replay ->> 'by' as by, (s.auto_replay ->> 'ratePerSecond')::float8 as rate,
    to_char(now(), 'YYYY-MM-DD HH24') as hour
  from redrive_catalog.source s join redrive_catalog.failure_group g on g.source_id = s.id
  where s.name = any($1::text[]) and s.auto_replay is not null and g.class = 'transient' and g.state = 'open'
    and g.open_count > 0
    and g.last_seen_at < now() - (s.auto_replay ->> 'quietMs')::float8 * interval '1 millisecond'
    and not exists (select from redrive_catalog.replay_run r where r.source_id = s.id and r.state in ('running', 'paused'))
  order by g.id limit 100`

export const STILL_DUE: string = `
select from redrive_catalog.source s join redrive_catalog.failure_group g on g.source_id = s.id
  where g.id = $1 and s.auto_replay is not null and g.state = 'open'`
