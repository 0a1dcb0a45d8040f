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

export const LOCK_MERGED: string = `
select g.id, g.source_id, s.name as source, g.merged_into
  from redrive_catalog.failure_group g join redrive_catalog.source s on s.id = g.source_id
  where g.id = any($1::uuid[]) order by g.id for no key update of g`

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
  from redrive_catalog.group_part p where p.group_id = $1::uuid and g.id = p.part_id`

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
