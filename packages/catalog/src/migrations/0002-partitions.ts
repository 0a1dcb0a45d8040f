/**
 * Runs a function with the rights of the schema's owner. The role for ingest and maintenance need not own the
 * tables, and cannot do more with them than these functions do.
 */
const AS_OWNER = `security definer set search_path = pg_catalog, pg_temp`

/** Functions that create and drop the partitions of days. */
export const PARTITIONS: string = String.raw`
-- Sets the options of a new partition, because partitions do not inherit them.
create function redrive_catalog.settle_partition(partition regclass, fill integer) returns void
language plpgsql as $$
begin
  execute format('alter table %s set (fillfactor = %s,
    -- A partition fills within a day and rarely changes later. Vacuum soon, so that lists can use index-only scans.
    autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 50000,
    autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0)', partition, fill);
end
$$;

-- Rows without a partition go to the default partition, so a wrong clock cannot stop the ingest.
create table redrive_catalog.dead_letter_default partition of redrive_catalog.dead_letter default;
create table redrive_catalog.dead_letter_payload_default partition of redrive_catalog.dead_letter_payload default;
create table redrive_catalog.dead_letter_lookup_default partition of redrive_catalog.dead_letter_lookup default;
select redrive_catalog.settle_partition('redrive_catalog.dead_letter_default', 90);
select redrive_catalog.settle_partition('redrive_catalog.dead_letter_payload_default', 100);
select redrive_catalog.settle_partition('redrive_catalog.dead_letter_lookup_default', 100);

create function redrive_catalog.make_partition(parent text, day date, fill integer) returns boolean
language plpgsql as $$
declare
  name text := parent || '_' || to_char(day, 'YYYYMMDD');
begin
  if to_regclass('redrive_catalog.' || name) is not null then return false; end if;
  -- Creates a table and attaches it. Creating the partition in place would lock the parent for all readers and writers.
  execute format('create table redrive_catalog.%I (like redrive_catalog.%I including defaults including constraints including storage)', name, parent);
  perform redrive_catalog.settle_partition(('redrive_catalog.' || quote_ident(name))::regclass, fill);
  execute format('alter table redrive_catalog.%I attach partition redrive_catalog.%I for values from (%L) to (%L)', parent, name,
    redrive_catalog.id_floor(day::timestamp at time zone 'UTC'),
    redrive_catalog.id_floor((day + 1)::timestamp at time zone 'UTC'));
  return true;
end
$$;

-- Creates the partitions of these days. If one cannot be created now, a later call creates it. Until then its rows go
-- to the default partition and stay there.
create function redrive_catalog.make_days(days date[]) returns integer
language plpgsql ${AS_OWNER} set lock_timeout = '2s' as $$
declare
  made integer := 0;
  day date;
begin
  -- One call at a time: two calls that create the same day would conflict.
  perform pg_advisory_xact_lock(7265647269766503);
  foreach day in array days loop
    begin
      -- Keeps a tenth of each page free for changes of status.
      made := made + redrive_catalog.make_partition('dead_letter', day, 90)::integer;
      perform redrive_catalog.make_partition('dead_letter_payload', day, 100);
      perform redrive_catalog.make_partition('dead_letter_lookup', day, 100);
    exception when lock_not_available or check_violation or duplicate_table then
      raise debug 'partition of day % not made: %', day, sqlerrm;
    end;
  end loop;
  return made;
end
$$;

-- Subtracts deleted rows from the counts and records them as expired.
create function redrive_catalog.record_expiry(gone jsonb) returns void
language plpgsql as $$
begin
  perform from redrive_catalog.failure_group
    where id in (select (g ->> 'group_id')::uuid from jsonb_array_elements(gone) g)
    order by id for no key update;
  update redrive_catalog.failure_group f set open_count = f.open_count - o.count
    from (select group_id, sum(count) as count
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

-- Drops a day whose retention has ended for all sources. Gives up after a short wait for a lock, because all other
-- sessions would queue behind it. A later call tries again.
create function redrive_catalog.drop_day(of_day date) returns boolean
language plpgsql ${AS_OWNER} set lock_timeout = '200ms' as $$
declare
  name text := 'dead_letter_' || to_char(of_day, 'YYYYMMDD');
  gone jsonb;
begin
  if to_regclass('redrive_catalog.' || name) is null then return false; end if;
  -- Prevents changes while the rows are counted. Reads, and writes to other days, continue.
  execute format('lock table redrive_catalog.%I in share row exclusive mode', name);
  if exists (select from redrive_catalog.source_day d join redrive_catalog.source s on s.id = d.source_id
    where d.day = of_day and d.last_ingested_at > now() - s.retention) then return false; end if;
  -- Counts by group and status with an index-only scan. A group has one source.
  execute format('select coalesce(jsonb_agg(g), ''[]'') from (
    select f.source_id, c.group_id, c.status, c.count, %L::date as day
      from (select group_id, status, count(*) as count from redrive_catalog.%I group by group_id, status) c
      join redrive_catalog.failure_group f on f.id = c.group_id) g', of_day, name) into gone;
  -- A replay in progress still needs the body, or the row to store its outcome.
  if gone @> '[{"status": "replaying"}]' then return false; end if;
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

-- Deletes some expired rows of one source, if other sources still keep the day or it has no separate partition.
create function redrive_catalog.delete_some(of_source integer, of_day date, most integer) returns integer
language plpgsql as $$
declare
  gone jsonb;
  deleted integer;
  is_left boolean;
begin
  with chosen as (
    select id from redrive_catalog.dead_letter
      where id >= redrive_catalog.id_floor(of_day::timestamp at time zone 'UTC')
        and id < redrive_catalog.id_floor((of_day + 1)::timestamp at time zone 'UTC')
        and source_id = of_source and status <> 'replaying'
        -- Checks each row, because new rows may have arrived or failed again since the day was selected.
        and ingested_at <= now() - (select retention from redrive_catalog.source where id = of_source)
      order by id limit most for update
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
      where id >= redrive_catalog.id_floor(of_day::timestamp at time zone 'UTC')
        and id < redrive_catalog.id_floor((of_day + 1)::timestamp at time zone 'UTC') and source_id = of_source);
  end if;
  -- Marks the day as expired for this source if no rows are left and no ingest has added rows since.
  update redrive_catalog.source_day d set
      expired_at = case when not is_left and d.last_ingested_at <= now() - s.retention then now() end
    from redrive_catalog.source s where s.id = d.source_id and d.source_id = of_source and d.day = of_day;
  return deleted;
end
$$;
`
