import { msSql } from '../read/sql.ts'
import { FROM_WHOLE_GROUPS, WHOLE } from '../read/statements.ts'
import { ITEM_STATES } from '../replay/run/states.ts'

export const CLOCK: string = `
select ${msSql('now()')} as at`

/** 1,000 groups: the largest of each source, then regressed ones, then the newest of the day. */
const GROUPS_MAX = 1_000

/** One day: alerts use a shorter time. */
const RECENT = `interval '1 day'`

export const SOURCES: string = `
select s.name as source, coalesce(g.open, 0)::float8 as open,
    coalesce(g.replaying, 0)::float8 as replaying, coalesce(g.undecided, 0)::float8 as undecided,
    (coalesce(g.count, 0) + s.past_count)::float8 as count,
    (coalesce(g.attempts, 0) + s.past_attempts)::float8 as attempts, coalesce(g.by_class, '{}') as "openByClass", o.oldest_ms as "oldestAt",
    s.expiring::float8 as expiring, ${msSql('s.next_expiry_at')} as "nextExpiryAt",
    (select ${msSql('max(d.last_ingested_at)')} from redrive_catalog.source_day d where d.source_id = s.id)
      as "lastIngestedAt",
    a.count::float8 as "setAside", s.mismatches::float8 as mismatches, ${msSql('s.mismatched_at')} as "mismatchedAt"
  from redrive_catalog.source s
  left join lateral (
    select sum(c.open) as open, sum(c.replaying) as replaying, sum(c.undecided) as undecided,
        sum(c.count) as count, sum(c.attempts) as attempts,
        jsonb_object_agg(c.class, c.open) filter (where c.open > 0) as by_class
      from (select class, sum(open_count) as open, sum(replaying_count) as replaying,
          sum(undecided_count) as undecided, sum(count) as count, sum(attempts) as attempts
        from redrive_catalog.failure_group where source_id = s.id group by class) c
  ) g on true
  left join lateral (
    select ${msSql('d.last_failed_at')} as oldest_ms from redrive_catalog.dead_letter d
      where d.source_id = s.id and d.status = 'open' order by d.last_failed_at, d.id limit 1
  ) o on true
  left join lateral (
    select count(*) from redrive_catalog.set_aside r
      where r.source_id = s.id and r.status in ('open', 'requested', 'replaying')
  ) a on true
  order by s.name`

export const GROUPS: string = `
select id, source, title, open::float8 as open, is_muted as "isMuted", ${msSql('created_at')} as "createdAt",
    ${msSql('regressed_at')} as "regressedAt"
  from (select g.*, s.name as source, ${WHOLE.open_count} as open,
      g.state = 'muted' and coalesce(g.muted_until, 'infinity') > now() as is_muted,
      row_number() over (partition by g.source_id order by ${WHOLE.open_count} desc, g.id) as place
    ${FROM_WHOLE_GROUPS} where g.root_id is null) g
  where place = 1 or created_at > now() - ${RECENT} or regressed_at > now() - ${RECENT}
  order by place = 1 desc, regressed_at > now() - ${RECENT} desc nulls last,
    greatest(created_at, regressed_at) desc, id limit ${GROUPS_MAX}`

const ITEM_SUMS = ITEM_STATES.map(
  (state) =>
    `'${state}', coalesce(sum(r.${state}), 0) + coalesce((s.past_items ->> '${state}')::bigint, 0)`,
).join(', ')

export const REPLAYED: string = `
select s.name as source, jsonb_build_object(${ITEM_SUMS}) as items
  from redrive_catalog.source s left join redrive_catalog.replay_run r on r.source_id = s.id
  group by s.id order by s.name`
