/** Separate counts of a group: open, being replayed, and undecided (the outcome of a replay is unknown). */
export const OPEN_COUNTS: string = String.raw`
-- No status changes while the rows are counted.
lock table redrive_catalog.dead_letter in share mode;
alter table redrive_catalog.failure_group add column replaying_count bigint not null default 0,
  add column undecided_count bigint not null default 0;
comment on column redrive_catalog.failure_group.open_count is 'Number of dead letters with the status open.';
comment on column redrive_catalog.failure_group.replaying_count is 'Number of dead letters with the status replaying.';
comment on column redrive_catalog.failure_group.undecided_count is 'Number of dead letters with the status unknown.';
update redrive_catalog.failure_group g set open_count = g.open_count - c.replaying - c.undecided,
    replaying_count = c.replaying, undecided_count = c.undecided
  from (select group_id, count(*) filter (where status = 'replaying') as replaying,
      count(*) filter (where status = 'unknown') as undecided
    from redrive_catalog.dead_letter where status in ('replaying', 'unknown') group by group_id) c
  where g.id = c.group_id;

-- Subtracts deleted rows from the counts and records them as expired.
create or replace function redrive_catalog.record_expiry(gone jsonb) returns void
language plpgsql as $$
begin
  perform from redrive_catalog.failure_group
    where id in (select (g ->> 'group_id')::uuid from jsonb_array_elements(gone) g)
    order by id for no key update;
  update redrive_catalog.failure_group f set open_count = f.open_count - o.open,
      replaying_count = f.replaying_count - o.replaying, undecided_count = f.undecided_count - o.undecided
    from (select group_id, coalesce(sum(count) filter (where status = 'open'), 0) as open,
        coalesce(sum(count) filter (where status = 'replaying'), 0) as replaying,
        coalesce(sum(count) filter (where status = 'unknown'), 0) as undecided
      from jsonb_to_recordset(gone) as g (group_id uuid, status text, count bigint)
      where status in ('open', 'replaying', 'unknown') group by group_id) o
    where f.id = o.group_id;
  insert into redrive_catalog.source_day as d (source_id, day, count, last_ingested_at, expired_at, expired)
    select source_id, day, 0, now(), now(), jsonb_object_agg(status, count)
      from (select source_id, day, status, sum(count) as count
        from jsonb_to_recordset(gone) as g (source_id integer, day date, status text, count bigint)
        group by source_id, day, status) s
      group by source_id, day order by source_id, day
    on conflict (source_id, day) do update set expired_at = now(), expired = (
      select jsonb_object_agg(status, count) from (
        select key as status, sum(value::bigint) as count from (
          select * from jsonb_each_text(d.expired) union all select * from jsonb_each_text(excluded.expired)) e
        group by key) t);
end
$$;

-- Grants the same privileges on the new tables as on dead letters, so that roles with manually granted privileges continue
-- to work.
do $grants$
declare
  given record;
  added text;
begin
  for given in
    select a.privilege_type as privilege, coalesce(quote_ident(r.rolname), 'public') as role
      from pg_class c cross join lateral aclexplode(c.relacl) a left join pg_roles r on r.oid = a.grantee
      where c.oid = 'redrive_catalog.dead_letter'::regclass and a.grantee <> c.relowner
  loop
    foreach added in array array['set_aside', 'set_aside_payload', 'source_check', 'selection', 'selection_item'] loop
      execute format('grant %s on redrive_catalog.%I to %s', given.privilege, added, given.role);
    end loop;
  end loop;
end
$grants$;
`
