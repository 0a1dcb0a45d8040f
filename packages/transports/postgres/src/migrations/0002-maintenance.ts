/** Partitions and retention. */
export const MAINTENANCE: string = String.raw`
-- Creates the partitions of the next days and drops old ones without needed rows. Needed rows of a dropped
-- partition move to outbox_default. Skips a partition when it would have to wait for a lock, because all other
-- statements would wait behind it: the next call is in an hour, and partitions are made a week ahead.
create function redrive.outbox_maintain(keep_delivered interval, keep_failed interval)
returns table (made integer, dropped integer, forgotten bigint)
language plpgsql set lock_timeout = '200ms' as $$
declare
  part record;
begin
  made := 0; dropped := 0; forgotten := 0;
  if not pg_try_advisory_xact_lock(7265647269766502) then return next; return; end if;
  -- Drop first: a turn locks the table before its partitions, and the same order avoids deadlocks.
  for part in
    select c.oid::regclass as name, to_date(substring(c.relname from '\d{8}$'), 'YYYYMMDD') as day
      from pg_inherits i join pg_class c on c.oid = i.inhrelid
      where i.inhparent = 'redrive.outbox'::regclass and c.relname ~ '^outbox_\d{8}$'
  loop
    continue when (part.day + 1)::timestamp at time zone 'UTC' > now() - keep_delivered;
    begin
      dropped := dropped + redrive.outbox_drop_partition(part.name, keep_delivered, keep_failed)::integer;
    exception when lock_not_available then
      raise debug 'partition % not dropped: %', part.name, sqlerrm;
    end;
  end loop;
  for ahead in 0..7 loop
    begin
      made := made + redrive.outbox_make_partition(((now() at time zone 'UTC')::date + ahead))::integer;
    exception when lock_not_available or check_violation or duplicate_table then
      -- check_violation: outbox_default already has rows of that day. They can stay there.
      raise debug 'partition of day % not made: %', ahead, sqlerrm;
    end;
  end loop;
  delete from redrive.outbox_default where id in (
    select id from redrive.outbox_default
      where delivered_at < now() - keep_delivered or failed_at < now() - keep_failed limit 10000);
  get diagnostics forgotten = row_count;
  return next;
end
$$;

-- Deletes the oldest keys of one consumer, a limited number per call.
create function redrive.inbox_forget(of_consumer text, keep interval) returns bigint
language plpgsql as $$
declare
  forgotten bigint;
begin
  delete from redrive.event_handled where (consumer, key) in (
    select consumer, key from redrive.event_handled
      where handled_at < now() - keep and consumer = of_consumer limit 10000 for update skip locked);
  get diagnostics forgotten = row_count;
  return forgotten;
end
$$;

-- Moves up to 10,000 needed rows. With more of them the partition stays as it is.
create function redrive.outbox_drop_partition(partition regclass, keep_delivered interval, keep_failed interval) returns boolean
language plpgsql as $$
declare
  kept bigint;
begin
  execute format('lock table redrive.outbox, %s in access exclusive mode', partition);
  execute format('create temporary table redrive_kept on commit drop as select * from %s
    where due_at is not null or failed_at > now() - $1 or delivered_at > now() - $2 limit 10001', partition)
    using keep_failed, keep_delivered;
  get diagnostics kept = row_count;
  if kept <= 10000 then
    execute format('drop table %s', partition);
    insert into redrive.outbox select * from redrive_kept;
  end if;
  drop table redrive_kept;
  return kept <= 10000;
end
$$;
`
