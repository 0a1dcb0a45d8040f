import { INDEXED, IS_READY, IS_READY_BY_ID, LANES_AT_ONCE, NO_ROW, TAKE } from './0002-fragments.ts'
import { TAKEN } from './0003-replays.ts'

/**
 * Condition: the id is between the lowest and the highest id of the statement. An id starts with the time, so
 * PostgreSQL reads only the days of these rows. Without it, PostgreSQL looks for the day of every row.
 */
const IN_BOUNDS = 'o.id >= lowest and o.id <= highest'

/** Settles and claims the rows of a turn with one read of the index each, instead of one read per row. */
export const TURN: string = String.raw`
-- One turn of a consumer, in one transaction: finishes rows, hands rows off and claims rows. It is one
-- function, because each call of another one would cost a tenth of the turn.
create or replace function redrive.outbox_turn(
  done uuid[], done_tokens bigint[], changes jsonb,
  source text, most integer, lease_ms double precision, floor timestamptz, after text
) returns setof redrive.outbox_claimed
language plpgsql ${INDEXED} set search_path = pg_catalog, pg_temp as $$
declare
  lease interval := lease_ms * interval '1 millisecond';
  new_token bigint;
  updated integer;
  ids uuid[];
  lowest uuid;
  highest uuid;
  heads uuid[];
  next_lane text;
begin
  if cardinality(done) > 0 then
    ids := array(select unnest(done) order by 1);
    lowest := ids[1];
    highest := ids[cardinality(ids)];
    update redrive.outbox o
      set status = 'delivered', due_at = null, lease_until = null, delivered_at = now()
      where o.id = any (ids) and ${IN_BOUNDS} and o.status = 'in_flight'
        -- "is true" makes this a filter. Without it, it would be a join.
        and ((o.id, o.lease_token) in (select d.id, d.token from unnest(done, done_tokens) as d (id, token))) is true;
    get diagnostics updated = row_count;
    -- Returns the rows that now have another owner. A row with the same token was changed by this caller
    -- in an earlier turn whose answer was lost.
    if updated < cardinality(done) then
      return query select d.id, ${NO_ROW} from unnest(done, done_tokens) as d (id, token)
        where not exists (select from redrive.outbox o where o.id = any (array[d.id]) and o.lease_token = d.token);
    end if;
  end if;

  -- Retries, dead letters, returns, drops and finished replays: each one is one update of the row.
  if changes is not null then
    -- The outcome of a replay is stored in the same transaction. This also locks the rows, so that no other
    -- consumer can claim one before it is updated below.
    if changes @? '$[*].outcome' then
      insert into redrive.replay_confirmation (queue, replay_id, outcome)
        select o.queue, o.replay_id, d.outcome
        from jsonb_to_recordset(changes) as d (id uuid, token bigint, outcome text)
          join redrive.outbox o on o.id = any (array[d.id])
        where d.outcome is not null and o.lease_token = d.token and o.status = 'in_flight'
          and o.replay_id is not null
        for no key update of o
        on conflict do nothing;
    end if;
    update redrive.outbox o set
        status = case when d.place in ('retry', 'returned') then 'pending' when d.place = 'delivered' then 'delivered' else 'failed' end,
        -- A returned row keeps its due time.
        due_at = case d.place when 'retry' then now() + d.delay_ms * interval '1 millisecond' when 'returned' then o.due_at end,
        lease_until = null,
        lapses = case when d.place in ('returned', 'delivered') then o.lapses else 0 end,
        failed_at = case when d.place in ('failed', 'dropped') then now() end,
        delivered_at = case d.place when 'delivered' then now() end,
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

  -- The oldest due rows. Only rows due after the floor are read: index entries of rows finished before it
  -- stay until vacuum, which an open transaction can delay for hours. The caller regularly scans all rows,
  -- without a floor. Rows are locked first, and the next statement updates them.
  if after is null then
    ids := array(
      select o.id from redrive.outbox o
        where o.queue = source and o.due_at > floor and ${IS_READY}
        order by o.due_at limit most
        for no key update skip locked);
  else
    ids := array(
      select o.id from redrive.outbox o
        where o.queue = source and o.lane is null and o.due_at > floor and ${IS_READY}
        order by o.due_at limit most
        for no key update skip locked);

    -- The first rows of lanes, after a given lane and up to a maximum number of lanes. The index is read from
    -- lane to lane, so a long lane costs no more than a short one. This statement locks the lane; the next
    -- one decides, because it sees everything committed until then.
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
        limit most - cardinality(ids)),
      (select s.lane from seen s where s.number = ${LANES_AT_ONCE})
    into heads, next_lane;

    ids := ids || array(
      select o.id from unnest(heads) as h (id) join redrive.outbox o on o.id = any (array[h.id])
        -- Still the first of its lane, and no other row of the lane is in flight: a replay or a late commit
        -- can come before a row in flight. That row is among the first 32, because it was the first before.
        where ${IS_READY_BY_ID} and not exists (
          select from (
            select p.id, p.position, p.lease_until from redrive.outbox p
              where p.queue = source and p.due_at is not null and p.lane is not null and p.lane = o.lane
              order by p.position limit 32) as first
            where first.position < o.position or (first.id <> o.id and first.lease_until >= now()))
        for no key update of o skip locked);
  end if;

  -- The rows are locked, so they have not changed.
  if cardinality(ids) > 0 then
    ids := array(select unnest(ids) order by 1);
    lowest := ids[1];
    highest := ids[cardinality(ids)];
    return query ${TAKE} where o.id = any (ids) and ${IN_BOUNDS} ${TAKEN};
  end if;
  if next_lane is not null then
    return query select null::uuid, null::bigint, null::timestamptz, null, next_lane, null, null, null::jsonb, null::bytea, null::jsonb;
  end if;
end
$$;
`
