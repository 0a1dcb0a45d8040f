/**
 * Runs a function with the rights of the schema's owner. The role for maintenance need not own the tables, and
 * cannot do more with them than these functions do.
 */
const AS_OWNER = `security definer set search_path = pg_catalog, pg_temp`

/** Keeps dead letters that still need a decision longer than settled ones, and counts the ones expiring soon. */
export const RETENTION: string = String.raw`
alter table redrive_catalog.source
  add column open_retention interval not null default '90 days',
  add column expiring bigint not null default 0,
  add column next_expiry_at timestamptz;
comment on column redrive_catalog.source.retention is
  'How long a settled dead letter is kept after its ingest or its last change of status.';
comment on column redrive_catalog.source.open_retention is
  'The same for open, replaying and unknown ones. A shorter value than retention has no effect.';
comment on column redrive_catalog.source.expiring is 'Number of open and unknown dead letters that expire soon, counted by maintenance.';
alter table redrive_catalog.source_day add column checked_at timestamptz;
comment on column redrive_catalog.source_day.checked_at is 'When maintenance last looked for expired rows, so that each day has its turn.';

-- Finds recent changes of status without a scan of the day. Rows without a change are not in it, so ingest does not pay.
create index dead_letter_settled on redrive_catalog.dead_letter (settled_at) where settled_at is not null;

create function redrive_catalog.kept_for(s redrive_catalog.source, status text) returns interval
language sql immutable as $$
  select case when status in ('open', 'replaying', 'unknown') then greatest(s.open_retention, s.retention) else s.retention end
$$;

-- Whether a day has a row that must stay. Reads a few index entries, not the rows of the day.
create function redrive_catalog.is_day_kept(of_day date) returns boolean
language plpgsql as $$
declare
  is_kept boolean;
begin
  execute format('select exists (
      select from redrive_catalog.source_day d join redrive_catalog.source s on s.id = d.source_id
      where d.day = $1 and (
        d.last_ingested_at > now() - s.retention
        -- A replay in progress still needs the body, or the row to store its outcome.
        or exists (select from redrive_catalog.%1$I l where l.source_id = s.id and l.status = ''replaying'')
        or d.last_ingested_at > now() - redrive_catalog.kept_for(s, ''open'')
          and exists (select from redrive_catalog.%1$I l where l.source_id = s.id and l.status in (''open'', ''unknown''))
        or exists (select from redrive_catalog.%1$I l where l.source_id = s.id
          and l.settled_at > now() - s.retention)
        or exists (select from redrive_catalog.%1$I l where l.source_id = s.id and l.status in (''open'', ''unknown'')
          and l.settled_at > now() - redrive_catalog.kept_for(s, ''open''))))',
    'dead_letter_' || to_char(of_day, 'YYYYMMDD')) into is_kept using of_day;
  return is_kept;
end
$$;

-- Drops a day without a row that must stay. Gives up after a short wait for a lock, because all other sessions would
-- queue behind it. A later call tries again.
create or replace function redrive_catalog.drop_day(of_day date) returns boolean
language plpgsql ${AS_OWNER} set lock_timeout = '200ms' as $$
declare
  name text := 'dead_letter_' || to_char(of_day, 'YYYYMMDD');
  gone jsonb;
begin
  if to_regclass('redrive_catalog.' || name) is null then return false; end if;
  -- Without a lock first: a day with open rows is checked every hour for weeks.
  if redrive_catalog.is_day_kept(of_day) then return false; end if;
  -- Prevents changes while the rows are counted. Reads, and writes to other days, continue.
  execute format('lock table redrive_catalog.%I in share row exclusive mode', name);
  if redrive_catalog.is_day_kept(of_day) then return false; end if;
  -- Counts by group and status with an index-only scan. A group has one source.
  execute format('select coalesce(jsonb_agg(g), ''[]'') from (
    select f.source_id, c.group_id, c.status, c.count, %L::date as day
      from (select group_id, status, count(*) as count from redrive_catalog.%I group by group_id, status) c
      join redrive_catalog.failure_group f on f.id = c.group_id) g', of_day, name) into gone;
  perform redrive_catalog.record_expiry(gone);
  execute format('drop table redrive_catalog.%I', name);
  execute format('drop table if exists redrive_catalog.%I', replace(name, 'letter', 'letter_payload'));
  execute format('drop table if exists redrive_catalog.%I', replace(name, 'letter', 'letter_lookup'));
  return true;
exception when lock_not_available or undefined_table or deadlock_detected then
  raise debug 'day % not dropped: %', of_day, sqlerrm;
  return false;
end
$$;

-- Deletes some expired rows of one source, if other rows of the day must stay or it has no separate partition.
create or replace function redrive_catalog.delete_some(of_source integer, of_day date, most integer) returns integer
language plpgsql as $$
declare
  floor_id uuid := redrive_catalog.id_floor(of_day::timestamp at time zone 'UTC');
  ceiling_id uuid := redrive_catalog.id_floor((of_day + 1)::timestamp at time zone 'UTC');
  settled_before timestamptz;
  open_before timestamptz;
  gone jsonb;
  deleted integer;
  is_left boolean;
begin
  select now() - s.retention, now() - redrive_catalog.kept_for(s, 'open') into settled_before, open_before
    from redrive_catalog.source s where s.id = of_source;
  -- By status, with its index: the rows that stay are not read. Two steps, because all writers lock in the order of ids.
  with found as materialized (
    (select id from redrive_catalog.dead_letter
      where id >= floor_id and id < ceiling_id and source_id = of_source and status in ('resolved', 'discarded', 'expired', 'not_returned')
        and ingested_at <= settled_before and coalesce(settled_at, '-infinity') <= settled_before limit most)
    union all
    (select id from redrive_catalog.dead_letter
      where id >= floor_id and id < ceiling_id and source_id = of_source and status in ('open', 'unknown')
        and ingested_at <= open_before and coalesce(settled_at, '-infinity') <= open_before limit most)
    limit most
  ), chosen as (
    select id from redrive_catalog.dead_letter
      where id >= floor_id and id < ceiling_id and id = any(array(select id from found))
        -- Checks each row again: its status may have changed, or it may have failed again, before it was locked.
        and status <> 'replaying'
        and greatest(ingested_at, settled_at) <= case when status in ('open', 'unknown') then open_before else settled_before end
      order by id for update
  ), letters as (
    delete from redrive_catalog.dead_letter d using chosen c where d.id = c.id
      returning d.source_id, d.group_id, d.status
  ), payloads as (
    delete from redrive_catalog.dead_letter_payload p using chosen c where p.dead_letter_id = c.id
  ), lookups as (
    delete from redrive_catalog.dead_letter_lookup l using chosen c where l.dead_letter_id = c.id
  )
  select coalesce(jsonb_agg(g), '[]'), coalesce(sum(count), 0)::integer from (
    select source_id, group_id, status, count(*) as count, of_day as day
      from letters group by source_id, group_id, status) g
    into gone, deleted;
  perform redrive_catalog.record_expiry(gone);
  is_left := deleted = most;
  if not is_left then
    is_left := exists (select from redrive_catalog.dead_letter
      where id >= floor_id and id < ceiling_id and source_id = of_source);
  end if;
  -- Marks the day as expired for this source if no rows are left and no ingest has added rows since.
  update redrive_catalog.source_day d set checked_at = now(),
      expired_at = case when not is_left and d.last_ingested_at <= settled_before then now() end
    where d.source_id = of_source and d.day = of_day;
  return deleted;
end
$$;

-- Counts the open and unknown rows of a source that expire within a week, or within half of a shorter retention.
-- Stores the number and the time of the first expiry, so that readers do not count rows.
create function redrive_catalog.count_expiring(of_source integer) returns void
language plpgsql as $$
declare
  kept interval;
  latest timestamptz;
  of_day date;
  counted record;
  total bigint := 0;
  first_at timestamptz;
begin
  select redrive_catalog.kept_for(s, 'open') into kept from redrive_catalog.source s where s.id = of_source;
  latest := now() - kept + least(interval '7 days', kept / 2);
  -- A row fails before its ingest. Only a wrong clock of a consumer reports a later day.
  for of_day in select d.day from redrive_catalog.source_day d
      where d.source_id = of_source and (d.expired_at is null or d.expired_at < d.last_ingested_at)
        and (d.day <= latest::date or d.last_ingested_at <= latest) loop
    select count(*) as count, min(greatest(ingested_at, settled_at)) as first_at into counted from redrive_catalog.dead_letter
      where id >= redrive_catalog.id_floor(of_day::timestamp at time zone 'UTC')
        and id < redrive_catalog.id_floor((of_day + 1)::timestamp at time zone 'UTC')
        and source_id = of_source and status in ('open', 'unknown')
        and ingested_at <= latest and coalesce(settled_at, '-infinity') <= latest;
    total := total + counted.count;
    first_at := least(first_at, counted.first_at);
  end loop;
  update redrive_catalog.source s set expiring = total, next_expiry_at = first_at + kept
    where s.id = of_source and (s.expiring, s.next_expiry_at) is distinct from (total, first_at + kept);
end
$$;

-- Totals of deleted groups and runs, so that sums over all time do not decrease.
alter table redrive_catalog.source
  add column past_count bigint not null default 0,
  add column past_attempts bigint not null default 0,
  add column past_items jsonb not null default '{}';
comment on column redrive_catalog.source.past_items is 'Number of items of deleted runs, by state.';

alter table redrive_catalog.source add column ingest_stopped_at timestamptz;
comment on column redrive_catalog.source.ingest_stopped_at is 'Since when its dead letters are put back into the broker; null: they are ingested.';

-- Starts the transaction of an ingest: until its end, no group of the source is deleted. So a group that the ingest has
-- found exists when its dead letters are counted. Rejects the ingest of a source whose dead letters are put back.
create function redrive_catalog.begin_ingest(of_source integer) returns void
language plpgsql as $$
begin
  perform pg_advisory_xact_lock_shared(72656472, of_source);
  if exists (select from redrive_catalog.source where id = of_source and ingest_stopped_at is not null) then
    raise exception 'the ingest of this source is stopped' using errcode = 'RDSTP';
  end if;
end
$$;

-- Stops or starts the ingest of a source. Waits for ingests in progress; afterwards none can commit.
create function redrive_catalog.stop_ingest(of_name text, stopped boolean) returns integer
language plpgsql as $$
declare
  of_source integer;
begin
  select id into of_source from redrive_catalog.source where name = of_name;
  if of_source is null then return null; end if;
  perform pg_advisory_xact_lock(72656472, of_source);
  update redrive_catalog.source set ingest_stopped_at = case when stopped then coalesce(ingest_stopped_at, now()) end
    where id = of_source;
  return of_source;
end
$$;

-- Deletes open dead letters that the broker has stored again, and counts them as put back.
create function redrive_catalog.delete_put_back(ids uuid[]) returns integer
language plpgsql as $$
declare
  gone jsonb;
  deleted integer;
begin
  with chosen as (
    select id from redrive_catalog.dead_letter where id = any(ids) and status = 'open' order by id for update
  ), letters as (
    delete from redrive_catalog.dead_letter d using chosen c where d.id = c.id
      returning d.id, d.source_id, d.group_id, d.first_failed_at
  ), payloads as (
    delete from redrive_catalog.dead_letter_payload p using chosen c where p.dead_letter_id = c.id
  ), lookups as (
    delete from redrive_catalog.dead_letter_lookup l using chosen c where l.dead_letter_id = c.id
  )
  select coalesce(jsonb_agg(g), '[]'), coalesce(sum(count), 0)::integer from (
    select source_id, group_id, (first_failed_at at time zone 'UTC')::date as day, count(*) as count
      from letters group by 1, 2, 3) g
    into gone, deleted;
  perform from redrive_catalog.failure_group
    where id in (select (g ->> 'group_id')::uuid from jsonb_array_elements(gone) g) order by id for no key update;
  update redrive_catalog.failure_group f set open_count = f.open_count - o.count
    from (select group_id, sum(count) as count
      from jsonb_to_recordset(gone) as g (group_id uuid, count bigint) group by group_id) o
    where f.id = o.group_id;
  update redrive_catalog.source_day d set
      expired = d.expired || jsonb_build_object('put_back', coalesce((d.expired ->> 'put_back')::bigint, 0) + o.count)
    from (select source_id, day, sum(count) as count
      from jsonb_to_recordset(gone) as g (source_id integer, day date, count bigint) group by source_id, day) o
    where d.source_id = o.source_id and d.day = o.day;
  return deleted;
end
$$;

-- Deletes some groups without dead letters that no user has touched: no owner, no comment, not muted, not resolved. A
-- group stays for 90 days after its last failure, because trends show it. In a source with many groups it stays only
-- for the retention of settled dead letters, so that there is room for new groups.
create function redrive_catalog.delete_groups(of_source integer, many integer, most integer) returns integer
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

-- What each server process found at its last check of a source at the broker.
create table redrive_catalog.source_check (
  source_id integer not null references redrive_catalog.source,
  process text collate "C" not null,
  checked_at timestamptz not null,
  -- Null: the broker was reachable.
  unreachable text,
  missing text[] not null,
  depth bigint,
  lag bigint,
  primary key (source_id, process)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);
comment on column redrive_catalog.source_check.missing is 'Queues or topics that do not exist.';
`
