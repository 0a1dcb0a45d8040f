import { msSql } from '../read/sql.ts'
import { GROUP_STATE } from '../read/statements.ts'

export const LOCK_BY_ID: string = `
select id from redrive_catalog.dead_letter where id = any($1::uuid[]) and status = $2
  order by id for no key update`

/** Selects rows that existed at the start and have not changed since. This excludes rows changed by this call. */
export const LOCK_OF_GROUP: string = `
select id from redrive_catalog.dead_letter
  where group_id = $1::uuid and status = $2 and ingested_at <= $3 and coalesce(settled_at, '-infinity') <= $3
  order by last_failed_at desc, id desc limit $4 for no key update skip locked`

const IS_AS_SEEN = `${GROUP_STATE} = $2::text
    and case when ${GROUP_STATE} = 'muted' then ${msSql('g.muted_until')} end is not distinct from $3::float8
    and g.owner is not distinct from $4::text and g.is_regressed = $5::boolean`

/** Applies the change. Resolving a group also clears its regression. */
export const CHANGE_GROUP: string = `
update redrive_catalog.failure_group g set
    state = coalesce($6, g.state),
    muted_until = case when $6::text is null then g.muted_until else to_timestamp($7::float8 / 1000.0) end,
    resolved_at = case $6 when 'resolved' then now() when 'open' then null when 'muted' then null else g.resolved_at end,
    is_regressed = g.is_regressed and $6 is distinct from 'resolved',
    owner = case when $8::boolean then $9::text else g.owner end
  where g.id = $1::uuid and ${IS_AS_SEEN}`

export const INSERT_COMMENT: string = `
insert into redrive_catalog.comment (subject, author, text) values ($1::uuid, $2, $3)`

export const NEWEST_COMMENTS: string = `
select id::text, author, text, (extract(epoch from written_at) * 1000)::bigint::float8 as "writtenAt"
  from (select * from redrive_catalog.comment where subject = $1::uuid order by id desc limit $2) c
  order by c.id`

/** As text: a Date would lose the microseconds, and so miss rows of the last millisecond. */
export const NOW: string = `
select clock_timestamp()::text as now`

export const RESOLVE_GROUP: string = `
update redrive_catalog.failure_group
  set state = 'resolved', resolved_at = now(), is_regressed = false, muted_until = null
  where id = $1::uuid`

export const MUTE_GROUP: string = `
update redrive_catalog.failure_group
  set state = 'muted', muted_until = to_timestamp($2::float8 / 1000.0), resolved_at = null
  where id = $1::uuid`

export const REOPEN_GROUP: string = `
update redrive_catalog.failure_group set state = 'open', muted_until = null, resolved_at = null
  where id = $1::uuid`

export const ASSIGN_GROUP: string = `
update redrive_catalog.failure_group set owner = $2
  where id = $1::uuid`

export const GROUP_EXISTS: string = `
select from redrive_catalog.failure_group where id = $1`
