/**
 * An expired row `o`, by the retention `r` of its queue or else by the given default. A null default never
 * expires a row.
 */
const expiredBy = (deliveredRetention: string, keepFailed: string) => `(o.due_at is null and (
      o.delivered_at < now() - coalesce(r.keep_delivered, ${deliveredRetention})
      or o.failed_at < now() - coalesce(r.keep_failed, ${keepFailed})))`

/**
 * Retention per queue. All queues share the day partitions, so maintenance by one consumer needs the
 * retention of every queue. Each consumer therefore stores the retention of its queue here. The consumer
 * must not delete rows of a queue that is not listed, because it cannot know for how long they are needed.
 *
 * A day is dropped after the longest `keep_delivered` of all queues. Earlier drops would move delivered
 * rows of queues with a longer retention to `outbox_default`, which deletes them one by one.
 */
export const RETENTION: string = String.raw`
create table redrive.outbox_retention (
  queue text collate "C" primary key,
  keep_delivered interval not null,
  keep_failed interval not null
);
comment on table redrive.outbox_retention is 'Retention of the rows of a queue, as its consumers last stored it.';

-- Creates the partitions of today and the next seven days. Returns how many are new. Deletes nothing.
create function redrive.outbox_make_partitions() returns integer
language plpgsql set lock_timeout = '200ms' as $$
declare
  made integer := 0;
begin
  for ahead in 0..7 loop
    begin
      made := made + redrive.outbox_make_partition(((now() at time zone 'UTC')::date + ahead))::integer;
    exception when lock_not_available or check_violation or duplicate_table then
      -- check_violation: outbox_default already has rows of that day. They can stay there.
      raise debug 'partition of day % not made: %', ahead, sqlerrm;
    end;
  end loop;
  return made;
end
$$;

drop function redrive.outbox_maintain(interval, interval);
drop function redrive.outbox_drop_partition(regclass, interval, interval);

-- Creates the partitions of the next days and drops days that no queue needs. Needed rows of a dropped
-- day move to outbox_default. With a queue: stores the retention of that queue, and keeps all rows of
-- queues without a stored retention. Without a queue: the arguments apply to queues without a stored
-- retention. Skips a partition after 200 ms of waiting for its lock, because producers and consumers
-- wait behind it: the next call is in an hour, and partitions are made a week ahead.
create function redrive.outbox_maintain(keep_delivered interval, keep_failed interval, of_queue text default null)
returns table (made integer, dropped integer, forgotten bigint)
language plpgsql set lock_timeout = '200ms' as $$
declare
  default_delivered interval := case when of_queue is null then keep_delivered end;
  default_failed interval := case when of_queue is null then keep_failed end;
  longest interval;
  part record;
begin
  made := 0; dropped := 0; forgotten := 0;
  -- Before the advisory lock: consumers of many queues start together, and only one of them gets it.
  if of_queue is not null and not exists (
    select from redrive.outbox_retention r where r.queue = of_queue
      and r.keep_delivered = outbox_maintain.keep_delivered and r.keep_failed = outbox_maintain.keep_failed
  ) then
    begin
      insert into redrive.outbox_retention (queue, keep_delivered, keep_failed)
        values (of_queue, keep_delivered, keep_failed)
        on conflict (queue) do update
          set keep_delivered = excluded.keep_delivered, keep_failed = excluded.keep_failed;
    exception when lock_not_available then
      -- Another consumer of this queue is storing it, and holds the lock until its maintenance ends.
      raise debug 'retention of % not stored: %', of_queue, sqlerrm;
    end;
  end if;
  if not pg_try_advisory_xact_lock(7265647269766502) then return next; return; end if;
  select greatest(max(r.keep_delivered), default_delivered) into longest from redrive.outbox_retention r;
  -- Drop first: a turn locks the table before its partitions, and the same order avoids deadlocks.
  for part in
    select c.oid::regclass as name, to_date(substring(c.relname from '\d{8}$'), 'YYYYMMDD') as day
      from pg_inherits i join pg_class c on c.oid = i.inhrelid
      where i.inhparent = 'redrive.outbox'::regclass and c.relname ~ '^outbox_\d{8}$'
  loop
    -- Without any retention "longest" is null, and every day stays.
    continue when ((part.day + 1)::timestamp at time zone 'UTC' <= now() - longest) is not true;
    begin
      dropped := dropped + redrive.outbox_drop_partition(part.name, default_delivered, default_failed)::integer;
    exception when lock_not_available then
      raise debug 'partition % not dropped: %', part.name, sqlerrm;
    end;
  end loop;
  made := redrive.outbox_make_partitions();
  delete from redrive.outbox_default where id in (
    select o.id from redrive.outbox_default o left join redrive.outbox_retention r on r.queue = o.queue
      where ${expiredBy('default_delivered', 'default_failed')} limit 10000);
  get diagnostics forgotten = row_count;
  return next;
end
$$;

-- Moves up to 10,000 needed rows. With more of them the partition stays as it is.
create function redrive.outbox_drop_partition(partition regclass, default_delivered interval, default_failed interval) returns boolean
language plpgsql as $$
declare
  kept bigint;
begin
  execute format('lock table redrive.outbox, %s in access exclusive mode', partition);
  execute format('create temporary table redrive_kept on commit drop as
    select o.* from %s o left join redrive.outbox_retention r on r.queue = o.queue
    where ${expiredBy('$1', '$2')} is not true limit 10001', partition)
    using default_delivered, default_failed;
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
