/** Named groups of fingerprint rules and splits, and the function that moves dead letters between groups. */
export const REGROUPING: string = String.raw`
alter table redrive_catalog.failure_group add column name text;
comment on column redrive_catalog.failure_group.name is 'Name by a fingerprint rule or a split. The dead letters are in its parts, one for each class and handler. Null: a signature made the group.';

-- Splits of groups by users. The first split whose conditions a dead letter of the group matches, moves it to the new group.
create table redrive_catalog.group_split (
  id bigint generated always as identity primary key,
  source_id integer not null references redrive_catalog.source,
  group_id uuid not null,
  new_group_id uuid not null,
  name text not null,
  conditions jsonb not null,
  split_by text not null,
  split_at timestamptz not null default clock_timestamp(),
  reason text not null,
  unique (group_id, name)
);
create index group_split_source on redrive_catalog.group_split (source_id);

-- Moves dead letters to other groups, with all counts. froms has the group of each one when it was read: a dead letter that
-- is in another group by now is left alone. The version stays the same, so runs and selections that contain it stay valid.
create function redrive_catalog.move_dead_letters(ids uuid[], froms uuid[], targets uuid[]) returns integer
-- Each row is found by its id. Without statistics of new partitions, the planner would read all rows of the day instead.
language plpgsql set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
declare
  moves jsonb;
  moved integer;
begin
  -- Locks in the order of ids, first the dead letters, then the groups, as all writers do.
  with locked as materialized (
    select d.id, d.group_id, d.status, d.attempts, d.last_failed_at from redrive_catalog.dead_letter d
      where d.id = any(ids) order by d.id for no key update
  ), chosen as materialized (
    select l.*, w.target from locked l join unnest(ids, froms, targets) as w (id, origin, target)
      on w.id = l.id and w.origin = l.group_id and w.target <> l.group_id
  ), changed as (
    update redrive_catalog.dead_letter d set group_id = c.target from chosen c where d.id = c.id
  )
  select coalesce(jsonb_agg(m), '[]'), coalesce(sum(m.count), 0)::integer into moves, moved from (
    select c.group_id as origin, c.target, c.status, date_trunc('minute', c.last_failed_at, 'UTC') as minute,
        count(*) as count, sum(c.attempts) as attempts, min(c.last_failed_at) as first, max(c.last_failed_at) as last
      from chosen c group by 1, 2, 3, 4) m;
  if moved = 0 then return 0; end if;
  perform from redrive_catalog.failure_group g where g.id in (
      select (m ->> 'origin')::uuid from jsonb_array_elements(moves) m
      union select (m ->> 'target')::uuid from jsonb_array_elements(moves) m
      union select t.root_id from jsonb_array_elements(moves) m
        join redrive_catalog.failure_group t on t.id = (m ->> 'target')::uuid where t.root_id is not null)
    order by g.id for no key update;
  update redrive_catalog.failure_group g set count = g.count + s.count, attempts = g.attempts + s.attempts,
      open_count = g.open_count + s.open, replaying_count = g.replaying_count + s.replaying,
      undecided_count = g.undecided_count + s.undecided,
      first_seen_at = least(g.first_seen_at, s.first), last_seen_at = greatest(g.last_seen_at, s.last)
    from (select e.id, sum(e.sign * m.count) as count, sum(e.sign * m.attempts) as attempts,
        coalesce(sum(e.sign * m.count) filter (where m.status = 'open'), 0) as open,
        coalesce(sum(e.sign * m.count) filter (where m.status = 'replaying'), 0) as replaying,
        coalesce(sum(e.sign * m.count) filter (where m.status = 'unknown'), 0) as undecided,
        min(m.first) filter (where e.sign = 1) as first, max(m.last) filter (where e.sign = 1) as last
      from jsonb_to_recordset(moves) as m (origin uuid, target uuid, status text, count bigint, attempts bigint,
          first timestamptz, last timestamptz)
        cross join lateral (values (m.origin, -1), (m.target, 1)) as e (id, sign)
      group by e.id) s
    where g.id = s.id;
  -- A resolved group becomes open if it receives open dead letters.
  update redrive_catalog.failure_group g set state = 'open', resolved_at = null
    from (select distinct coalesce(t.root_id, t.id) as id from jsonb_to_recordset(moves) as m (target uuid, status text)
      join redrive_catalog.failure_group t on t.id = m.target where m.status = 'open') t
    where g.id = t.id and g.state = 'resolved';
  -- Counts per minute are deleted after some days, so only existing ones move.
  with gone as (
    update redrive_catalog.group_minute r set count = r.count - s.count
      from (select m.origin, m.minute, sum(m.count) as count
        from jsonb_to_recordset(moves) as m (origin uuid, minute timestamptz, count bigint) group by 1, 2) s
      where r.group_id = s.origin and r.minute = s.minute returning r.group_id, r.minute
  )
  insert into redrive_catalog.group_minute as r (group_id, minute, count)
    select m.target, m.minute, sum(m.count)
      from jsonb_to_recordset(moves) as m (origin uuid, target uuid, minute timestamptz, count bigint)
        join gone on gone.group_id = m.origin and gone.minute = m.minute group by 1, 2
    on conflict (group_id, minute) do update set count = r.count + excluded.count;
  update redrive_catalog.group_hour r set count = r.count - s.count
    from (select m.origin, date_trunc('hour', m.minute, 'UTC') as hour, sum(m.count) as count
      from jsonb_to_recordset(moves) as m (origin uuid, minute timestamptz, count bigint) group by 1, 2) s
    where r.group_id = s.origin and r.hour = s.hour;
  insert into redrive_catalog.group_hour as r (group_id, hour, count)
    select m.target, date_trunc('hour', m.minute, 'UTC'), sum(m.count)
      from jsonb_to_recordset(moves) as m (target uuid, minute timestamptz, count bigint) group by 1, 2
    on conflict (group_id, hour) do update set count = r.count + excluded.count;
  return moved;
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
    execute format('grant %s on redrive_catalog.group_split to %s', given.privilege, given.role);
  end loop;
end
$grants$;
`
