import { momentSql, msSql } from '../read/sql.ts'

/** 5 s: an ingest stores a batch in less time. */
export const MERGE_SETTINGS: string = `set local lock_timeout = '5s'`

export const SOURCE_OF_GROUP: string = `
select source_id from redrive_catalog.failure_group where id = $1::uuid`

/**
 * Waits for ingests of the source that are in progress; later ones wait for this transaction. So an ingest never sees half
 * of a merge. Two merges in one source run one after the other.
 */
export const LOCK_SOURCE: string = `
select pg_advisory_xact_lock(72656472, $1)`

/**
 * Locks the groups and all their parts in the order of their ids, as every change of a status does. Otherwise the two could
 * wait for each other. Returns only the groups.
 */
export const LOCK_MERGED: string = `
with locked as (
  select g.id, g.source_id, g.merged_into, g.root_id, g.merged_by from redrive_catalog.failure_group g
    where g.id = any($1::uuid[])
      or g.id in (select p.part_id from redrive_catalog.group_part p where p.group_id = any($1::uuid[]))
    order by g.id for no key update
)
select g.id, g.source_id, s.name as source, coalesce(g.root_id, g.merged_into) as root, g.merged_by
  from locked g join redrive_catalog.source s on s.id = g.source_id
  where g.id = any($1::uuid[])`

/** Adds the groups, and all their parts, to the parts of the target. The target is not merged, so it is in no other group. */
export const ADD_PARTS: string = `
insert into redrive_catalog.group_part (group_id, part_id)
  select $1::uuid, o.id from unnest($2::uuid[]) as o (id)
  union select $1::uuid, p.part_id from redrive_catalog.group_part p where p.group_id = any($2::uuid[])`

export const MARK_MERGED: string = `
update redrive_catalog.failure_group set merged_into = $1::uuid, merged_by = $3, merged_at = clock_timestamp(),
    merge_reason = $4
  where id = any($2::uuid[])`

/** Sets the root of all parts of a group. */
export const SET_ROOT: string = `
update redrive_catalog.failure_group g set root_id = $1::uuid
  from redrive_catalog.group_part p
  where p.group_id = $1::uuid and g.id = p.part_id and g.root_id is distinct from $1::uuid`

/** A resolved group becomes open if it receives open dead letters. */
export const REOPEN_MERGED: string = `
update redrive_catalog.failure_group g set state = 'open', resolved_at = null
  where g.id = $1::uuid and g.state = 'resolved' and exists (
    select from redrive_catalog.group_part p join redrive_catalog.failure_group o on o.id = p.part_id
      where p.group_id = g.id and o.open_count > 0)`

/** Removes a group, and all its parts, from the groups that it is part of. */
export const REMOVE_PARTS: string = `
delete from redrive_catalog.group_part a using redrive_catalog.group_part b
  where b.part_id = $1::uuid and a.group_id = b.group_id and (a.part_id = $1::uuid or a.part_id in (
    select c.part_id from redrive_catalog.group_part c where c.group_id = $1::uuid))`

export const MARK_SEPARATE: string = `
update redrive_catalog.failure_group set merged_into = null, root_id = null, merged_by = null, merged_at = null,
    merge_reason = null
  where id = $1::uuid`

/**
 * Returns the statement for the next open dead letters of a source, or of one group of it, newest first, with the values
 * that rules compare. The ingest used the same handler, type of the error and signature.
 */
export const openLetters = (
  scope: 'source_id = s.id' | 'group_id = $5::uuid',
  withHeaders: boolean,
): string => `
select d.id, d.group_id, d.class, d.code, d.type, d.message, d.history -> -1 ->> 'type' as error_type,
    d.history -> -1 ->> 'signature' as signature, g.handler as own_handler, coalesce(g.handler, s.handler) as handler,
    g.name is not null as is_named, coalesce(g.root_id, d.group_id) as root_id,
    ${withHeaders ? 'd.headers' : `'{}'::jsonb as headers`}, ${msSql('d.last_failed_at')} as last_ms
  from redrive_catalog.source s cross join lateral (
    select * from redrive_catalog.dead_letter d where d.${scope} and d.status = 'open'
        and ($2::float8 is null or (d.last_failed_at, d.id) < (${momentSql('$2::float8')}, $3::uuid))
      order by d.last_failed_at desc, d.id desc limit $4
  ) d left join redrive_catalog.failure_group g on g.id = d.group_id
  where s.name = $1
  order by d.last_failed_at desc, d.id desc`

export const TITLES: string = `
select id, title from redrive_catalog.failure_group where id = any($1::uuid[])`

export const SOURCE_ID: string = `
select id from redrive_catalog.source where name = $1`

/** Prevents merges and deletions of groups in this transaction, as an ingest does. Other ingests continue. */
export const SHARE_SOURCE: string = `
select pg_advisory_xact_lock_shared(72656472, $1)`

export const MOVE: string = `
select redrive_catalog.move_dead_letters($1::uuid[], $2::uuid[], $3::uuid[]) as moved`

/** The splits of a source, oldest first. */
export const SPLITS: string = `
select p.group_id, p.name, p.conditions
  from redrive_catalog.group_split p join redrive_catalog.source s on s.id = p.source_id
  where s.name = $1 order by p.id`

/** All groups that each group of a source is part of. */
export const PARTS_OF_SOURCE: string = `
select p.part_id, array_agg(p.group_id::text order by p.group_id) as groups
  from redrive_catalog.group_part p join redrive_catalog.failure_group g on g.id = p.part_id
    join redrive_catalog.source s on s.id = g.source_id
  where s.name = $1 group by p.part_id`

export const SPLIT_BY_NAME: string = `
select conditions = $3::jsonb as is_same from redrive_catalog.group_split where group_id = $1::uuid and name = $2`

export const COUNT_SPLITS: string = `
select count(*)::integer as count from redrive_catalog.group_split where source_id = $1`

export const INSERT_SPLIT: string = `
insert into redrive_catalog.group_split (source_id, group_id, new_group_id, name, conditions, split_by, reason)
  values ($1, $2::uuid, $3::uuid, $4, $5::jsonb, $6, $7)`
