/**
 * Groups that users merge by hand. A merge stores only that a group is part of another one. No dead letter and no count
 * changes, so a merge takes the same time for any number of dead letters, and undoing it restores exactly what was.
 */
export const MERGED_GROUPS: string = String.raw`
alter table redrive_catalog.failure_group
  add column merged_into uuid,
  add column root_id uuid,
  add column merged_by text,
  add column merged_at timestamptz,
  add column merge_reason text;
comment on column redrive_catalog.failure_group.merged_into is 'The group that a user merged it into; null: it is a separate group.';
comment on column redrive_catalog.failure_group.root_id is 'The group that shows its dead letters: the end of the chain of merges. Null: the group itself.';

-- All groups that are part of a group, directly or through another one. Reads of a group add its parts.
create table redrive_catalog.group_part (
  group_id uuid not null,
  part_id uuid not null,
  primary key (group_id, part_id)
);
create index group_part_of on redrive_catalog.group_part (part_id);

-- Adds a batch to the counts: for each group and minute the number, the attempts, the first and the last failure, and
-- for each day of the first failure the number. left_groups lists a group once for each open dead letter that it
-- loses: a replay that fails in another way moves to another group.
create or replace function redrive_catalog.add_to_counts(of_source integer, groups uuid[], minutes timestamptz[], counts integer[],
  attempts bigint[], firsts timestamptz[], lasts timestamptz[], days date[], day_counts integer[], left_groups uuid[])
returns void language plpgsql as $$
declare
  -- A merge waits for the ingest, so the roots do not change here.
  roots uuid[] := array(select distinct p.root_id from redrive_catalog.failure_group p
    where p.id = any(groups) and p.root_id is not null);
begin
  -- Locks the groups in the order of ids, so that two batches with the same groups cannot deadlock. With these locks,
  -- the order of the other updates does not matter.
  perform from redrive_catalog.failure_group g
    where g.id = any(groups || left_groups || roots) order by g.id for no key update;
  update redrive_catalog.failure_group g set open_count = g.open_count - l.count
    from (select id, count(*) from unnest(left_groups) as id group by id) l where g.id = l.id;
  -- A resolved group becomes open again. It is regressed if the failure is newer than the resolution; an older
  -- failure only arrived late.
  update redrive_catalog.failure_group g set
      count = g.count + a.count, open_count = g.open_count + a.count, attempts = g.attempts + a.attempts,
      first_seen_at = least(g.first_seen_at, a.first), last_seen_at = greatest(g.last_seen_at, a.last),
      is_regressed = g.is_regressed or coalesce(a.last > g.resolved_at, false),
      regressed_at = case when a.last > g.resolved_at then now() else g.regressed_at end,
      resolved_at = null,
      state = case g.state when 'resolved' then 'open' else g.state end
    from (select u.id, sum(u.count) as count, sum(u.attempts) as attempts, min(u.first) as first, max(u.last) as last
      from unnest(groups, counts, attempts, firsts, lasts) as u (id, count, attempts, first, last)
      group by u.id) a
    where g.id = a.id;
  -- The same for the groups that these are merged into: users see and resolve only those.
  if cardinality(roots) > 0 then
    update redrive_catalog.failure_group g set
        is_regressed = g.is_regressed or a.last > g.resolved_at,
        regressed_at = case when a.last > g.resolved_at then now() else g.regressed_at end,
        resolved_at = null, state = 'open'
      from (select p.root_id as id, max(u.last) as last from unnest(groups, lasts) as u (id, last)
        join redrive_catalog.failure_group p on p.id = u.id group by p.root_id) a
      where g.id = a.id and g.id = any(roots) and g.state = 'resolved';
  end if;
  insert into redrive_catalog.group_minute as r (group_id, minute, count)
    select * from unnest(groups, minutes, counts)
    on conflict (group_id, minute) do update set count = r.count + excluded.count;
  insert into redrive_catalog.group_hour as r (group_id, hour, count)
    select u.id, date_trunc('hour', u.minute, 'UTC'), sum(u.count)
      from unnest(groups, minutes, counts) as u (id, minute, count) group by 1, 2
    on conflict (group_id, hour) do update set count = r.count + excluded.count;
  insert into redrive_catalog.source_day as s (source_id, day, count, last_ingested_at)
    select of_source, d.day, d.count, now() from unnest(days, day_counts) as d (day, count) order by d.day
    -- Uses the current clock: maintenance may have marked the day as expired since this transaction started.
    on conflict (source_id, day) do update set count = s.count + excluded.count, last_ingested_at = clock_timestamp();
end
$$;

-- Deletes some groups without dead letters that no user has touched: no owner, no comment, not muted, not resolved, not
-- merged. A deleted part would return as a separate group with its next failure, and the merge would be lost. A group
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
        and g.owner is null and g.state = 'open' and g.root_id is null
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

-- Grants the same privileges on the new table as on dead letters, so that roles with manually granted privileges continue
-- to work.
do $grants$
declare
  given record;
begin
  for given in
    select a.privilege_type as privilege, coalesce(quote_ident(r.rolname), 'public') as role
      from pg_class c cross join lateral aclexplode(c.relacl) a left join pg_roles r on r.oid = a.grantee
      where c.oid = 'redrive_catalog.dead_letter'::regclass and a.grantee <> c.relowner
  loop
    execute format('grant %s on redrive_catalog.group_part to %s', given.privilege, given.role);
  end loop;
end
$grants$;
`
