import {
  INDEXED,
  IS_READY,
  IS_READY_BY_ID,
  LANES_AT_ONCE,
  NO_ROW,
  PAST,
  TAKE,
} from './0002-fragments.ts'

const TAKEN = `returning o.id, o.lease_token, o.due_at, o.type, o.lane, o.key, o.content_type, o.headers,
        o.payload, ${PAST}`

/** Claims, hand-offs and leases. */
export const CLAIMS: string = String.raw`
create type redrive.outbox_claimed as (
  id uuid,
  -- Null: the row that the caller wanted to finish has another owner now. If the id is null too, the next
  -- claim starts after this lane.
  token bigint,
  due_at timestamptz,
  type text,
  lane text,
  key text,
  content_type text,
  headers jsonb,
  payload bytea,
  -- Null: the row never failed, was never replayed and never had an expired lease.
  past jsonb
);

-- One turn of a consumer, in one transaction: finishes rows, hands rows off and claims rows. It is one
-- function, because each call of another one would cost a tenth of the turn.
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
    -- Returns the rows that now have another owner. A row with the same token was changed by this caller
    -- in an earlier turn whose answer was lost.
    if updated < cardinality(done) then
      return query select d.id, ${NO_ROW} from unnest(done, done_tokens) as d (id, token)
        where not exists (select from redrive.outbox o where o.id = any (array[d.id]) and o.lease_token = d.token);
    end if;
  end if;

  -- Retries, dead letters, returns and drops: each one is one update of the row.
  if changes is not null then
    update redrive.outbox o set
        status = case when d.place in ('retry', 'returned') then 'pending' else 'failed' end,
        -- A returned row keeps its due time.
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

  -- The oldest due rows. Only rows due after the floor are read: index entries of rows finished before it
  -- stay until vacuum, which an open transaction can delay for hours. The caller regularly scans all rows,
  -- without a floor.
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
      limit most - updated),
    (select s.lane from seen s where s.number = ${LANES_AT_ONCE})
  into heads, next_lane;

  return query
    with ready as materialized (
      select o.id from unnest(heads) as h (id) join redrive.outbox o on o.id = any (array[h.id])
        -- Still the first of its lane, and no other row of the lane is in flight: a replay or a late commit
        -- can come before a row in flight. That row is among the first 32, because it was the first before.
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

-- Heartbeat: renews the leases of these rows. Returns the ids of rows with another owner.
create function redrive.outbox_keep(ids uuid[], tokens bigint[], lease_ms double precision) returns setof uuid
language plpgsql ${INDEXED} as $$
begin
  -- A locked row is being changed now. It is skipped: the other transaction may be waiting for another one
  -- of these rows.
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
`
