import { partsSql } from '../read/conditions.ts'
import { msSql } from '../read/sql.ts'
import { GROUP_STATE } from '../read/statements.ts'

export const LOCK_BY_ID: string = `
select id from redrive_catalog.dead_letter where id = any($1::uuid[]) and status = $2
  order by id for no key update`

/** Discarded dead letters whose replay a consumer confirmed after the discard. */
export const CONFIRMED_WHILE_DISCARDED: string = `
select distinct d.id from redrive_catalog.dead_letter d join redrive_catalog.replay_item i on i.dead_letter_id = d.id
  where d.id = any($1::uuid[]) and d.status = 'discarded' and i.state = 'resolved' and i.proof = 'confirmation'
    and i.settled_at >= d.settled_at`

/** The group and all groups that are merged into it. */
export const PARTS_OF_GROUP: string = partsSql('$1::uuid[]')

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
  where g.id = $1::uuid and g.merged_into is null and ${IS_AS_SEEN}`

export const INSERT_COMMENT: string = `
insert into redrive_catalog.comment (subject, author, text) values ($1::uuid, $2, $3)`

export const NEWEST_COMMENTS: string = `
select id::text, author, text, (extract(epoch from written_at) * 1000)::bigint::float8 as "writtenAt"
  from (select * from redrive_catalog.comment where subject = $1::uuid order by id desc limit $2) c
  order by c.id`

/** The time as text: a Date would lose the microseconds, and so miss rows of the last millisecond. */
export const NOW: string = `
select clock_timestamp()::text as now`

export const RESOLVE_GROUP: string = `
update redrive_catalog.failure_group
  set state = 'resolved', resolved_at = now(), is_regressed = false, muted_until = null
  where id = $1::uuid and merged_into is null`

export const MUTE_GROUP: string = `
update redrive_catalog.failure_group
  set state = 'muted', muted_until = to_timestamp($2::float8 / 1000.0), resolved_at = null
  where id = $1::uuid and merged_into is null`

export const REOPEN_GROUP: string = `
update redrive_catalog.failure_group set state = 'open', muted_until = null, resolved_at = null
  where id = $1::uuid and merged_into is null`

export const ASSIGN_GROUP: string = `
update redrive_catalog.failure_group set owner = $2
  where id = $1::uuid and merged_into is null`

export const GROUP_EXISTS: string = `
select merged_into is not null as is_merged from redrive_catalog.failure_group where id = $1`

/** 60 s: enough for the largest selection, but not unlimited. */
export const SELECTION_SETTINGS: string = `set local statement_timeout = '60s';
  set local enable_seqscan = off; set local enable_bitmapscan = off; set local jit = off`

/** Returns the statement that stores the dead letters of another statement as items. `$place` is the id of the selection. */
export const selectItems = (matching: string, place: number): string => `
with found as materialized (select q.id, q.version, q.source from (${matching}) q),
added as (
  insert into redrive_catalog.selection_item (selection_id, dead_letter_id, version)
    select $${place}::uuid, f.id, f.version from found f
)
select count(*)::integer as count, coalesce(array_agg(distinct f.source), '{}') as sources,
    encode(sha256(convert_to(string_agg(f.id || ' ' || f.version, ',' order by f.id), 'UTF8')), 'hex') as hash
  from found f`

export const INSERT_SELECTION: string = `
insert into redrive_catalog.selection (id, action, hash, asked, sources, count, selected_by)
  values ($1, $2, $3, $4, $5, $6, $7)`

export const FIND_SELECTION: string = `
select id, action, hash, count, sources, selected_by as "selectedBy", ${msSql('selected_at')} as "selectedAt"
  from redrive_catalog.selection where id = $1::uuid`

/**
 * Locks the next items and their dead letters, in the order of ids. A dead letter of another version or status is not
 * the same any more; a deleted one neither.
 */
export const LOCK_SELECTED: string = `
with items as materialized (
  select i.dead_letter_id, i.version from redrive_catalog.selection_item i
    where i.selection_id = $1::uuid and i.is_changed is null order by i.dead_letter_id limit $3 for update
),
letters as materialized (
  select d.id, d.version, d.status from redrive_catalog.dead_letter d
    where d.id in (select dead_letter_id from items) order by d.id for no key update
)
select i.dead_letter_id as id, coalesce(l.version = i.version and l.status = $2, false) as is_same
  from items i left join letters l on l.id = i.dead_letter_id order by 1`

export const MARK_SELECTED: string = `
update redrive_catalog.selection_item set is_changed = dead_letter_id = any($3::uuid[])
  where selection_id = $1::uuid and dead_letter_id = any($2::uuid[])`

export const SELECTED_COUNTS: string = `
select count(*) filter (where is_changed)::integer as changed, count(*) filter (where not is_changed)::integer as skipped
  from redrive_catalog.selection_item where selection_id = $1::uuid`

export const SELECTED_SKIPPED: string = `
select dead_letter_id as id from redrive_catalog.selection_item
  where selection_id = $1::uuid and not is_changed order by dead_letter_id limit $2`
