/**
 * The protocol. Time is the database's own everywhere. The settings on the functions take away every
 * plan but the indexed one: their plans do not depend on what statistics say, or whether there are any.
 * So one plan is as good as another, and it is made once for each connection: making it takes longer
 * than running it.
 *
 * Rows that are known by their id are found by `id = any (array[…])` and not by a join on equality. That could
 * be turned round: an empty table would be read whole, and still be when it has become full.
 */
export const INDEXED = `
set plan_cache_mode = force_generic_plan
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
set enable_mergejoin = off set enable_sort = off set enable_material = off`

/**
 * What happened to a row so far, when anything has. Written out in each claim: a function that takes
 * the row would fetch its payload to be given it.
 */
export const PAST = `case when o.attempts = 0 and o.lapses = 0 and o.generation = 0 and o.cycle is null
        and o.replay_id is null and o.failure_history = '[]' then null
      else jsonb_build_object(
        'attempts', o.attempts, 'lapses', o.lapses, 'generation', o.generation, 'replayId', o.replay_id,
        'closedCycles', jsonb_array_length(o.failure_history), 'cycle', o.cycle,
        'firstFailedAt', (extract(epoch from o.first_failed_at) * 1000)::bigint) end`

/** Due, and nobody has it. */
export const IS_READY = `(o.due_at <= now() and (o.lease_until is null or o.lease_until < now()))`

/** The same of rows that are known by their id, said so that no index of unfinished rows can be used instead. */
export const IS_READY_BY_ID = `(coalesce(o.due_at, 'infinity') <= now() and (o.lease_until is null or o.lease_until < now()))`

export const TAKE = `update redrive.outbox o
      set status = 'in_flight', lease_until = now() + lease, lease_token = new_token,
        lapses = o.lapses + (o.status = 'in_flight')::integer`

const TAKEN = `returning o.id, o.lease_token, o.due_at, o.type, o.lane, o.key, o.content_type, o.headers,
        o.payload, ${PAST}`

export const NO_ROW = `null::bigint, null::timestamptz, null, null, null, null, null::jsonb, null::bytea, null::jsonb`

/** 1,000 lanes in one turn: with more of them busy or waiting, the next turn goes on from there. */
export const LANES_AT_ONCE = 1_000

export const FUNCTIONS: string = String.raw`
create type redrive.outbox_claimed as (
  id uuid,
  -- Null: that row, which the caller meant to finish, has another owner by now. Without an id as well:
  -- the lane is where the next look at lanes should begin.
  token bigint,
  due_at timestamptz,
  type text,
  lane text,
  key text,
  content_type text,
  headers jsonb,
  payload bytea,
  -- Null: never failed, never replayed, never left behind.
  past jsonb
);

-- One turn of a consumer, in one transaction: what it has finished, what it hands off, what it takes.
-- All in one function: each call of another would cost a tenth of the turn.
create function redrive.outbox_turn(
  done uuid[], done_tokens bigint[], changes jsonb,
  source text, most integer, lease_ms double precision, floor timestamptz, after text
) returns setof redrive.outbox_claimed
language plpgsql ${INDEXED} as $$
declare
  lease interval := lease_ms * interval '1 millisecond';
  new_token bigint;
  updated integer;
  heads uuid[];
  next_lane text;
begin
  if cardinality(done) > 0 then
    update redrive.outbox o
      set status = 'delivered', due_at = null, lease_until = null, delivered_at = now()
      from unnest(done, done_tokens) as d (id, token)
      where o.id = any (array[d.id]) and o.lease_token = d.token and o.status = 'in_flight';
    get diagnostics updated = row_count;
    -- Says which were not the caller's any more. One that is with the same token what it should become
    -- was changed by the same caller, who did not hear the answer.
    if updated < cardinality(done) then
      return query select d.id, ${NO_ROW} from unnest(done, done_tokens) as d (id, token)
        where not exists (select from redrive.outbox o where o.id = any (array[d.id]) and o.lease_token = d.token);
    end if;
  end if;

  -- Retries, dead letters, returns and drops: each is one update of the row.
  if changes is not null then
    update redrive.outbox o set
        status = case when d.place in ('retry', 'returned') then 'pending' else 'failed' end,
        -- A returned one keeps its place.
        due_at = case d.place when 'retry' then now() + d.delay_ms * interval '1 millisecond' when 'returned' then o.due_at end,
        lease_until = null,
        lapses = case d.place when 'returned' then o.lapses else 0 end,
        failed_at = case when d.place in ('failed', 'dropped') then now() end,
        deleted_at = case d.place when 'dropped' then now() end,
        attempts = coalesce(d.attempts, o.attempts),
        first_failed_at = coalesce(to_timestamp(d.first_failed_ms / 1000.0), o.first_failed_at),
        cycle = coalesce(d.cycle, o.cycle),
        reason = coalesce(d.reason, o.reason),
        last_error = coalesce(d.error, o.last_error)
      from jsonb_to_recordset(changes) as d (id uuid, token bigint, place text, delay_ms double precision,
        attempts integer, first_failed_ms bigint, cycle jsonb, reason text, error text)
      where o.id = any (array[d.id]) and o.lease_token = d.token and o.status = 'in_flight';
    get diagnostics updated = row_count;
    if updated < jsonb_array_length(changes) then
      return query select d.id, ${NO_ROW} from jsonb_to_recordset(changes) as d (id uuid, token bigint)
        where not exists (select from redrive.outbox o where o.id = any (array[d.id]) and o.lease_token = d.token);
    end if;
  end if;

  if most <= 0 then return; end if;
  new_token := nextval('redrive.lease_token');

  -- The oldest that are due. Only rows due after the floor are looked at: the entries of rows that were
  -- finished before it stay in the index until they are vacuumed, which a forgotten transaction can
  -- put off for hours. The caller looks at all of them every now and then, without a floor.
  if after is null then
    return query
      with due as materialized (
        select o.id from redrive.outbox o
          where o.queue = source and o.due_at > floor and ${IS_READY}
          order by o.due_at limit most
          for no key update skip locked
      )
      ${TAKE} from due where o.id = any (array[due.id]) ${TAKEN};
    return;
  end if;

  return query
    with due as materialized (
      select o.id from redrive.outbox o
        where o.queue = source and o.lane is null and o.due_at > floor and ${IS_READY}
        order by o.due_at limit most
        for no key update skip locked
    )
    ${TAKE} from due where o.id = any (array[due.id]) ${TAKEN};
  get diagnostics updated = row_count;

  -- The heads of lanes, from one lane on and so many at most. It goes from lane to lane in the index, so
  -- a long lane costs no more than a short one. Whoever looks at a lane locks it, and decides in the
  -- next statement, which sees what was committed until then.
  with recursive head (lane, id, is_ready, number) as (
    (select o.lane, o.id, ${IS_READY}, 1 from redrive.outbox o
      where o.queue = source and o.due_at is not null and o.lane is not null and o.lane > after
      order by o.lane, o.position limit 1)
    union all
    select n.lane, n.id, n.is_ready, head.number + 1 from head, lateral (
      select o.lane, o.id, ${IS_READY} as is_ready from redrive.outbox o
        where o.queue = source and o.due_at is not null and o.lane is not null and o.lane > head.lane
        order by o.lane, o.position limit 1) n
      where head.number < ${LANES_AT_ONCE}
  ), seen as materialized (select * from head)
  select
    array(select s.id from seen s
      where s.is_ready and pg_try_advisory_xact_lock(hashtextextended(s.lane, hashtext(source)))
      limit most - updated),
    (select s.lane from seen s where s.number = ${LANES_AT_ONCE})
  into heads, next_lane;

  return query
    with ready as materialized (
      select o.id from unnest(heads) as h (id) join redrive.outbox o on o.id = any (array[h.id])
        -- Still the head, and nobody has another one of the lane: a replay or a late commit can come
        -- before one that is in hand. It is among the first, because it was the first once.
        where ${IS_READY_BY_ID} and not exists (
          select from (
            select p.id, p.position, p.lease_until from redrive.outbox p
              where p.queue = source and p.due_at is not null and p.lane is not null and p.lane = o.lane
              order by p.position limit 32) as first
            where first.position < o.position or (first.id <> o.id and first.lease_until >= now()))
        for no key update of o skip locked
    )
    ${TAKE} from ready where o.id = any (array[ready.id]) ${TAKEN};
  if next_lane is not null then
    return query select null::uuid, null::bigint, null::timestamptz, null, next_lane, null, null, null::jsonb, null::bytea, null::jsonb;
  end if;
end
$$;

-- Heartbeat: still at work on these. Says which are not the caller's any more.
create function redrive.outbox_keep(ids uuid[], tokens bigint[], lease_ms double precision) returns setof uuid
language plpgsql ${INDEXED} as $$
begin
  -- One that is locked is being changed this moment. Nobody waits for it: whoever changes it may be
  -- waiting for another one of these.
  with mine as materialized (
    select o.id from unnest(ids, tokens) as d (id, token) join redrive.outbox o on o.id = any (array[d.id])
      where o.lease_token = d.token and o.status = 'in_flight'
      for no key update of o skip locked
  )
  update redrive.outbox o
    set lease_until = now() + lease_ms * interval '1 millisecond'
    from mine where o.id = any (array[mine.id]);
  return query select d.id from unnest(ids, tokens) as d (id, token)
    where not exists (select from redrive.outbox o where o.id = any (array[d.id]) and o.lease_token = d.token);
end
$$;

-- Closes the cycle of a failed row, keeps it in the history and opens the next one. Id, key, lane,
-- position and bytes stay.
create function redrive.outbox_reopen(event_id uuid, new_generation bigint, replayed_by text, new_replay_id text) returns void
language sql as $$
  update redrive.outbox o set
    failure_history = o.failure_history || jsonb_build_object(
      'number', jsonb_array_length(o.failure_history) + 1,
      'attempts', o.attempts,
      'firstFailedAt', (extract(epoch from o.first_failed_at) * 1000)::bigint,
      'failedAt', (extract(epoch from o.failed_at) * 1000)::bigint,
      'lastDelayMs', coalesce(o.cycle -> 'lastDelayMs', '0'),
      'notBefore', null,
      'history', coalesce(o.cycle -> 'history', '[]'),
      'reason', o.reason,
      'lastError', o.last_error,
      'generation', o.generation,
      'replayId', o.replay_id,
      'replayedAt', (extract(epoch from clock_timestamp()) * 1000)::bigint,
      'replayedBy', replayed_by),
    status = 'pending', due_at = clock_timestamp(), attempts = 0, lapses = 0, generation = new_generation,
    replay_id = new_replay_id, lease_until = null, lease_token = null, first_failed_at = null, failed_at = null,
    deleted_at = null, last_error = null, reason = null, cycle = null
  where o.id = event_id
$$;

-- Replays a dead letter, from psql or anywhere:
--   select redrive.outbox_replay(id, generation + 1, 'me@example.com') from redrive.outbox_dead_letter where …
-- The generation is the caller's to choose and must be higher than the last: the same command twice,
-- or two people at once, replays once. Answers 'replayed', or why not: 'not_failed', 'not_newer',
-- 'not_found'.
create function redrive.outbox_replay(event_id uuid, new_generation bigint, replayed_by text) returns text
language plpgsql as $$
declare
  was record;
begin
  select o.status, o.generation into was from redrive.outbox o where o.id = event_id for update;
  if not found then return 'not_found'; end if;
  if was.status <> 'failed' then return 'not_failed'; end if;
  if new_generation <= was.generation then return 'not_newer'; end if;
  -- The same replay has the same id, however often it is asked for.
  perform redrive.outbox_reopen(event_id, new_generation, replayed_by,
    md5(event_id || ':' || new_generation)::uuid::text);
  return 'replayed';
end
$$;

-- A replay by the control plane. The same replay twice is one, also when it has failed again since. A
-- row that is gone, because its partition is, is made again from what the control plane kept.
create function redrive.outbox_republish(event_id uuid, new_replay_id text, copy jsonb, replayed_by text) returns void
language plpgsql as $$
declare
  was record;
begin
  select o.status, o.generation, o.replay_id, o.failure_history into was
    from redrive.outbox o where o.id = event_id for update;
  if not found then
    insert into redrive.outbox
      (id, queue, type, lane, key, content_type, headers, payload, generation, failure_history, replay_id)
      select event_id, c.queue, c.type, c.lane, c.key, c.content_type, c.headers, decode(c.payload, 'base64'),
        c.generation + 1,
        c.failure_history || (c.closed || jsonb_build_object(
          'replayedAt', (extract(epoch from clock_timestamp()) * 1000)::bigint, 'replayedBy', replayed_by)),
        new_replay_id
      from jsonb_to_record(copy) as c (queue text, type text, lane text, key text, content_type text,
        headers jsonb, payload text, generation bigint, failure_history jsonb, closed jsonb)
      on conflict do nothing;
  elsif was.status = 'failed' and was.replay_id is distinct from new_replay_id
    and not was.failure_history @> jsonb_build_array(jsonb_build_object('replayId', new_replay_id)) then
    perform redrive.outbox_reopen(event_id, was.generation + 1, replayed_by, new_replay_id);
  end if;
end
$$;

-- What a person on call wants to see first.
create view redrive.outbox_dead_letter as
  select id, queue, type, coalesce(key, id::text) as key, reason,
    cycle -> 'history' -> -1 ->> 'class' as class,
    cycle -> 'history' -> -1 ->> 'signature' as signature,
    last_error, attempts, first_failed_at, failed_at,
    jsonb_array_length(failure_history) + 1 as cycle_number, generation, lane, headers
  from redrive.outbox
  where failed_at is not null and deleted_at is null;
comment on view redrive.outbox_dead_letter is 'Events that were given up, without their payload.';

-- Makes the partitions of the days to come and drops those of which nothing has to be kept any more.
-- What is left in such a partition and still needed moves to outbox_default. Gives up at once when it
-- would have to wait for a lock, because everybody else would then wait behind it: it is called
-- again in an hour, and partitions are made a week ahead.
create function redrive.outbox_maintain(keep_delivered interval, keep_failed interval)
returns table (made integer, dropped integer, forgotten bigint)
language plpgsql set lock_timeout = '200ms' as $$
declare
  part record;
begin
  made := 0; dropped := 0; forgotten := 0;
  if not pg_try_advisory_xact_lock(7265647269766502) then return next; return; end if;
  -- Dropped first: whoever takes part in a turn locks the table before its partitions, and so must we.
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
      -- check_violation: rows of that day are in outbox_default already, and may stay there.
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

-- Forgets the oldest keys of one consumer, some at a time.
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

-- 10,000 rows to be kept are moved; with more the partition stays as it is.
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
