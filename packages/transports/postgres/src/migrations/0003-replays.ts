import {
  INDEXED,
  IS_READY,
  IS_READY_BY_ID,
  LANES_AT_ONCE,
  NO_ROW,
  PAST,
  TAKE,
} from './0002-fragments.ts'

/** The history of a row, with the key that a replay replaces. */
const PAST_WITH_REPLACES = PAST.replace(
  "'replayId', o.replay_id,",
  "'replayId', o.replay_id, 'replaces', o.replaces,",
)

export const TAKEN: string = `returning o.id, o.lease_token, o.due_at, o.type, o.lane, o.key, o.content_type, o.headers,
        o.payload, ${PAST_WITH_REPLACES}`

/** Confirmations of replays, and edited replays. Events without a replay have no additional cost. */
export const REPLAYS: string = String.raw`
-- The new column needs a short lock on the outbox. While the migration waits for an open transaction, all other
-- statements wait too. It therefore fails after 5 s and can be run again.
set local lock_timeout = '5s';
alter table redrive.outbox add column replaces text;
comment on column redrive.outbox.replaces is 'Key of the event that this event replaces: a user edited it before the replay.';

create table redrive.replay_confirmation (
  queue text collate "C" not null,
  replay_id text not null,
  outcome text not null,
  confirmed_at timestamptz not null default now(),
  lease_until timestamptz,
  lease_token bigint,
  primary key (queue, replay_id),
  constraint replay_confirmation_outcome check (outcome in ('handled', 'already_handled', 'dropped'))
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
comment on table redrive.replay_confirmation is 'Outcomes of replays, until the control plane has stored them.';
comment on column redrive.replay_confirmation.lease_until is 'End of the lease of a control plane that is reading the row.';
-- Oldest first. A lease changes none of its columns.
create index replay_confirmation_age on redrive.replay_confirmation (queue, confirmed_at);

-- Grants the same privileges as on the outbox, so that consumers with manually granted privileges continue to work.
do $grants$
declare
  given record;
begin
  for given in
    select a.privilege_type as privilege, coalesce(quote_ident(r.rolname), 'public') as role
      from pg_class c cross join lateral aclexplode(c.relacl) a left join pg_roles r on r.oid = a.grantee
      where c.oid = 'redrive.outbox'::regclass and a.grantee <> c.relowner
  loop
    execute format('grant %s on redrive.replay_confirmation to %s', given.privilege, given.role);
  end loop;
end
$grants$;

-- One turn of a consumer, in one transaction: finishes rows, hands rows off and claims rows. It is one
-- function, because each call of another one would cost a tenth of the turn.
create or replace function redrive.outbox_turn(
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

-- A replay by the control plane. A repeated replay has no effect, even after the row has failed again. A row
-- that was dropped with its partition is created again from the data of the control plane. An edited replay
-- names the key that it replaces, and has a new key and payload.
create or replace function redrive.outbox_republish(event_id uuid, new_replay_id text, copy jsonb, replayed_by text) returns void
language plpgsql as $$
declare
  was record;
begin
  select o.status, o.generation, o.replay_id, o.failure_history into was
    from redrive.outbox o where o.id = event_id for update;
  if not found then
    insert into redrive.outbox
      (id, queue, type, lane, key, content_type, headers, payload, generation, failure_history, replay_id, replaces)
      select event_id, c.queue, c.type, c.lane, c.key, c.content_type, c.headers, decode(c.payload, 'base64'),
        c.generation + 1,
        c.failure_history || (c.closed || jsonb_build_object(
          'replayedAt', (extract(epoch from clock_timestamp()) * 1000)::bigint, 'replayedBy', replayed_by)),
        new_replay_id, c.replaces
      from jsonb_to_record(copy) as c (queue text, type text, lane text, key text, content_type text,
        headers jsonb, payload text, generation bigint, failure_history jsonb, closed jsonb, replaces text)
      on conflict do nothing;
  elsif was.status = 'failed' and was.replay_id is distinct from new_replay_id
    and not was.failure_history @> jsonb_build_array(jsonb_build_object('replayId', new_replay_id)) then
    perform redrive.outbox_reopen(event_id, was.generation + 1, replayed_by, new_replay_id);
    if copy ->> 'replaces' is not null then
      update redrive.outbox o set key = copy ->> 'key', replaces = copy ->> 'replaces',
          payload = decode(copy ->> 'payload', 'base64')
        where o.id = event_id;
    end if;
  end if;
end
$$;
`
