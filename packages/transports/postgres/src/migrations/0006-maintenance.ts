/** 1,000 rows per step: a commit of a producer waits for the log of a whole step. */
const STEP_ROWS = 1_000
/** 10,000 rows: with more of them still to be delivered or looked up, the day stays. */
const MOST_ROWS = 10_000

const DATE = `to_date(right(c.relname, 8), 'YYYYMMDD')`

/** Condition: the finished row `o` is expired by the retention `r` of its queue, or else by the parameters. */
const IS_EXPIRED = (deliveredRetention: string, failedRetention: string) => `(
  o.delivered_at < now() - coalesce(r.keep_delivered, ${deliveredRetention})
  or o.failed_at < now() - coalesce(r.keep_failed, ${failedRetention})) is true`

const SECURED = `security definer set search_path = pg_catalog, pg_temp set lock_timeout = '50ms'`

/**
 * Maintenance in steps. A step is one transaction. Only steps that create or detach a day lock the outbox. They read no
 * rows under that lock, and give up after 50 ms.
 *
 * A day is detached first, and its needed rows move afterwards: the default partition does not accept them
 * while their day is attached. PostgreSQL rejects "detach concurrently" for tables with a default partition.
 */
export const MAINTENANCE_STEPS: string = String.raw`
set local lock_timeout = '5s';
drop function redrive.outbox_maintain(interval, interval, text);
drop function redrive.outbox_drop_partition(regclass, interval, interval);

-- Discarded and drained dead letters. Written when a user discards them, not when events fail.
create index outbox_deleted on redrive.outbox (queue, failed_at) where failed_at is not null and deleted_at is not null;
-- Only rows of dropped days, and rows without a partition, are in the default partition.
create index outbox_default_delivered on redrive.outbox_default (queue, delivered_at) where delivered_at is not null;

-- Deletes expired rows of the default partition, of one queue after the other. Returns their number.
create function redrive.outbox_forget(default_delivered interval, default_failed interval) returns bigint
language plpgsql ${SECURED} as $$
declare
  of record;
  ids uuid[];
begin
  for of in select queue, keep_delivered, keep_failed from redrive.outbox_retention loop
    ids := array(
      (select o.id from redrive.outbox_default o
        where o.queue = of.queue and o.delivered_at < now() - of.keep_delivered limit ${STEP_ROWS})
      union all
      (select o.id from redrive.outbox_default o
        where o.queue = of.queue and o.deleted_at is null and o.failed_at < now() - of.keep_failed limit ${STEP_ROWS})
      union all
      (select o.id from redrive.outbox_default o
        where o.queue = of.queue and o.deleted_at is not null and o.failed_at < now() - of.keep_failed limit ${STEP_ROWS}));
    exit when cardinality(ids) > 0;
  end loop;
  if coalesce(cardinality(ids), 0) = 0 and (default_delivered is not null or default_failed is not null) then
    ids := array(select o.id from redrive.outbox_default o left join redrive.outbox_retention r on r.queue = o.queue
      where r.queue is null and ${IS_EXPIRED('default_delivered', 'default_failed')} limit ${STEP_ROWS});
  end if;
  delete from redrive.outbox_default o where o.id = any (ids);
  return coalesce(cardinality(ids), 0);
end
$$;

-- Moves needed rows of a detached day to the default partition. Returns their number; 0 after it dropped the day.
create function redrive.outbox_empty_day(detached regclass, default_delivered interval, default_failed interval) returns bigint
language plpgsql ${SECURED} as $$
declare
  moved bigint;
begin
  -- The partial indexes find these rows.
  execute format('with gone as (
    delete from %1$s where id = any (array(
      (select o.id from %1$s o where o.due_at is not null limit ${STEP_ROWS})
      union all
      (select o.id from %1$s o left join redrive.outbox_retention r on r.queue = o.queue
        where o.failed_at is not null and o.deleted_at is null and not ${IS_EXPIRED('$1', '$2')} limit ${STEP_ROWS})
      union all
      (select o.id from %1$s o left join redrive.outbox_retention r on r.queue = o.queue
        where o.failed_at is not null and o.deleted_at is not null and not ${IS_EXPIRED('$1', '$2')} limit ${STEP_ROWS})))
    returning *)
    insert into redrive.outbox select * from gone on conflict do nothing', detached) using default_delivered, default_failed;
  get diagnostics moved = row_count;
  if moved > 0 then return moved; end if;
  -- Few: the day was detached because of that.
  execute format('insert into redrive.outbox select o.* from %s o left join redrive.outbox_retention r on r.queue = o.queue
    where o.delivered_at is not null and not ${IS_EXPIRED('$1', '$2')} on conflict do nothing', detached)
    using default_delivered, default_failed;
  execute format('drop table %s', detached);
  return 0;
end
$$;

-- Detaches a day if it has few rows that must stay. Reads it before it takes a lock.
create function redrive.outbox_detach_day(partition regclass, default_delivered interval, default_failed interval) returns boolean
language plpgsql ${SECURED} as $$
declare
  needed bigint;
  leased bigint;
  name text;
begin
  execute format('select count(*), count(*) filter (where lease_until >= now())
    from (select lease_until from %s where due_at is not null limit ${MOST_ROWS + 1}) o', partition) into needed, leased;
  if needed > ${MOST_ROWS} or leased > 0 then return false; end if;
  execute format('select count(*) from (select from %s o left join redrive.outbox_retention r on r.queue = o.queue
    where o.delivered_at is not null and not ${IS_EXPIRED('$1', '$2')} limit ${MOST_ROWS + 1}) o', partition)
    into needed using default_delivered, default_failed;
  if needed > ${MOST_ROWS} then return false; end if;
  select relname into name from pg_class where oid = partition;
  execute format('alter table redrive.outbox detach partition %s', partition);
  -- Under this name, a later step drops it, also after a crash. Days that a user detached keep their name.
  execute format('alter table %s rename to %I', partition, replace(name, 'outbox_', 'outbox_dropping_'));
  return true;
end
$$;

-- Does the next step of the maintenance, if any and if no other session does one now. The caller adds the subject of a
-- skipped step to "skipped" of the next calls.
create function redrive.outbox_maintenance_step(
  default_delivered interval, default_failed interval, skipped text[],
  out done text, out subject text, out amount bigint)
language plpgsql ${SECURED} as $$
declare
  longest interval;
  today date := (clock_timestamp() at time zone 'UTC')::date;
  start uuid;
begin
  if not pg_try_advisory_xact_lock(7265647269766502) then return; end if;

  select c.relname into subject from pg_class c
    where c.relnamespace = 'redrive'::regnamespace and c.relkind = 'r' and c.relname ~ '^outbox_dropping_[0-9]{8}$'
      and c.relname <> all (skipped) limit 1;
  if found then
    begin
      amount := redrive.outbox_empty_day(format('redrive.%I', subject)::regclass, default_delivered, default_failed);
      done := case amount when 0 then 'dropped' else 'moved' end;
    exception when lock_not_available then done := 'skipped';
    end;
    return;
  end if;

  select 'outbox_' || to_char(today + ahead, 'YYYYMMDD') into subject from generate_series(0, 7) ahead
    where to_regclass('redrive.outbox_' || to_char(today + ahead, 'YYYYMMDD')) is null
      and 'outbox_' || to_char(today + ahead, 'YYYYMMDD') <> all (skipped) order by ahead limit 1;
  if found then
    done := 'skipped';
    start := redrive.uuid_floor(to_date(right(subject, 8), 'YYYYMMDD')::timestamp at time zone 'UTC');
    -- With rows of that day in the default partition it cannot be attached. The primary key finds them without a scan.
    perform from redrive.outbox_default o where o.id >= start
      and o.id < redrive.uuid_floor((to_date(right(subject, 8), 'YYYYMMDD') + 1)::timestamp at time zone 'UTC') limit 1;
    if found then return; end if;
    begin
      perform redrive.outbox_make_partition(to_date(right(subject, 8), 'YYYYMMDD'));
      done := 'made';
    exception when lock_not_available or check_violation or duplicate_table then null;
    end;
    return;
  end if;

  amount := redrive.outbox_forget(default_delivered, default_failed);
  if amount > 0 then
    done := 'deleted'; subject := 'outbox_default';
    return;
  end if;

  select greatest(max(r.keep_delivered), default_delivered) into longest from redrive.outbox_retention r;
  select c.relname into subject from pg_inherits i join pg_class c on c.oid = i.inhrelid
    where i.inhparent = 'redrive.outbox'::regclass and c.relname ~ '^outbox_[0-9]{8}$' and c.relname <> all (skipped)
      -- Without any retention "longest" is null, and every day stays.
      and (${DATE} + 1)::timestamp at time zone 'UTC' <= now() - longest
    order by c.relname limit 1;
  if found then
    done := 'skipped';
    begin
      if redrive.outbox_detach_day(format('redrive.%I', subject)::regclass, default_delivered, default_failed) then
        done := 'detached';
      end if;
    exception when lock_not_available then null;
    end;
  end if;
end
$$;

do $revoke$
declare
  name text;
begin
  foreach name in array array['outbox_forget(interval, interval)', 'outbox_empty_day(regclass, interval, interval)',
    'outbox_detach_day(regclass, interval, interval)', 'outbox_maintenance_step(interval, interval, text[])'] loop
    execute format('revoke execute on function redrive.%s from public', name);
  end loop;
end
$revoke$;

-- Runs all steps, for psql: call redrive.outbox_maintain('2 days', '14 days', 'billing'). With a queue it stores the
-- retention of that queue. Without one, the arguments apply to queues without a stored retention.
create procedure redrive.outbox_maintain(keep_delivered interval, keep_failed interval, of_queue text default null)
language plpgsql as $$
declare
  step record;
  skipped text[] := '{}';
begin
  if of_queue is not null then
    perform redrive.outbox_retain(of_queue, keep_delivered, keep_failed);
    keep_delivered := null; keep_failed := null;
  end if;
  loop
    commit;
    select * into step from redrive.outbox_maintenance_step(keep_delivered, keep_failed, skipped);
    exit when step.done is null;
    if step.done = 'skipped' then skipped := skipped || step.subject; end if;
  end loop;
end
$$;
`
