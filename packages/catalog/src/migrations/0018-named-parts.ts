/** Retention of named groups: their parts are deleted when they are empty, and then the groups. */
export const NAMED_PARTS: string = String.raw`
-- Deletes some groups without dead letters that no user has touched: no owner, no comment, not muted, not resolved, not
-- merged, not made by a split. A deleted part of a merge would return as a separate group with its next failure, and the
-- merge would be lost. A part of a named group is created again in its group, so it is deleted, and then its group. A group
-- stays for 90 days after its last failure, because trends show it. In a source with many groups it stays only for the
-- retention of settled dead letters, so that there is room for new groups.
create or replace function redrive_catalog.delete_groups(of_source integer, many integer, most integer) returns integer
language plpgsql set lock_timeout = '2s' as $$
declare
  latest timestamptz;
  gone record;
begin
  select now() - case when (select count(*) from redrive_catalog.failure_group where source_id = of_source) > many
      then s.retention else greatest(s.retention, interval '90 days') end
    into latest from redrive_catalog.source s where s.id = of_source;
  if not exists (select from redrive_catalog.failure_group
    where source_id = of_source and open_count = 0 and last_seen_at <= latest) then return 0; end if;
  -- Waits for ingests of this source that are in progress. Later ones wait for this transaction.
  perform pg_advisory_xact_lock(72656472, of_source);
  with chosen as (
    select g.id from redrive_catalog.failure_group g
      where g.source_id = of_source and g.open_count = 0 and g.last_seen_at <= latest
        and g.owner is null and g.state = 'open'
        and (g.root_id is null or (g.name is not null and g.merged_by is null))
        and not exists (select from redrive_catalog.group_split t where t.new_group_id = g.id)
        and not exists (select from redrive_catalog.group_part p where p.group_id = g.id)
        and not exists (select from redrive_catalog.comment c where c.subject = g.id)
        and not exists (select from redrive_catalog.dead_letter d where d.group_id = g.id)
      order by g.last_seen_at limit most
  ), groups as (
    delete from redrive_catalog.failure_group g using chosen c
      where g.id = c.id and g.owner is null and g.state = 'open' returning g.id, g.count, g.attempts
  ), minutes as (
    delete from redrive_catalog.group_minute m using chosen c where m.group_id = c.id
  ), hours as (
    delete from redrive_catalog.group_hour h using chosen c where h.group_id = c.id
  ), parts as (
    delete from redrive_catalog.group_part p using groups g where p.part_id = g.id
  )
  select count(*) as groups, coalesce(sum(count), 0) as count, coalesce(sum(attempts), 0) as attempts into gone from groups;
  if gone.groups > 0 then
    update redrive_catalog.source set past_count = past_count + gone.count, past_attempts = past_attempts + gone.attempts
      where id = of_source;
  end if;
  return gone.groups;
exception when lock_not_available then
  raise debug 'groups of source % not deleted: %', of_source, sqlerrm;
  return 0;
end
$$;
`
