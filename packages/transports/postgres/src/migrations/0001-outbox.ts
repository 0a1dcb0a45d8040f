/**
 * The outbox and the inbox. Each choice says why beside it; the short form is that a claim must not
 * depend on statistics, must not touch an index, and must not slow down when nothing can be vacuumed.
 */
export const OUTBOX: string = String.raw`
-- Time comes first in a UUIDv7, so a range of ids is a range of time. Version 18 has uuidv7() of its
-- own; this one works on all.
create function redrive.uuid_v7(moment timestamptz default clock_timestamp()) returns uuid
language sql volatile parallel safe as $$
  select encode(
    set_bit(set_bit(
      overlay(uuid_send(gen_random_uuid())
        placing substring(int8send((extract(epoch from moment) * 1000)::bigint) from 3)
        from 1 for 6),
      52, 1), 53, 1),
    'hex')::uuid
$$;

-- The smallest id of that moment: where a partition begins.
create function redrive.uuid_floor(moment timestamptz) returns uuid
language sql stable parallel safe as $$
  select rpad(lpad(to_hex((extract(epoch from moment) * 1000)::bigint), 12, '0'), 32, '0')::uuid
$$;

-- Order of adding. A sequence and not the id: the clocks that make ids differ between servers.
create sequence redrive.outbox_position;
-- One number for each claim; the highest is the owner.
create sequence redrive.lease_token;

-- Partitioned by id, that is by time: what is done is dropped with its day instead of deleted row by
-- row, and the id alone stays the primary key.
create table redrive.outbox (
  id uuid not null default redrive.uuid_v7() primary key,
  position bigint not null default nextval('redrive.outbox_position'),
  due_at timestamptz default clock_timestamp(),
  lease_until timestamptz,
  lease_token bigint,
  generation bigint not null default 0,
  created_at timestamptz not null default clock_timestamp(),
  first_failed_at timestamptz,
  failed_at timestamptz,
  delivered_at timestamptz,
  deleted_at timestamptz,
  attempts integer not null default 0,
  lapses integer not null default 0,
  status text not null default 'pending',
  -- Compared byte by byte: names are not for dictionaries, and claims compare many.
  queue text collate "C" not null,
  type text,
  lane text collate "C",
  key text,
  content_type text,
  replay_id text,
  reason text,
  last_error text,
  headers jsonb not null default '{}',
  cycle jsonb,
  failure_history jsonb not null default '[]',
  payload bytea not null,
  constraint outbox_status check (status in ('pending', 'in_flight', 'delivered', 'failed')),
  -- The index of due rows looks at due_at alone: a row that waits without one would never be found.
  constraint outbox_due check ((due_at is not null) = (status in ('pending', 'in_flight'))),
  constraint outbox_failed check ((failed_at is not null) = (status = 'failed'))
) partition by range (id);

comment on table redrive.outbox is 'Events to be handled or relayed. Dead letters are the rows with status failed.';
comment on column redrive.outbox.position is 'Order of adding; within a lane, the order of handling.';
comment on column redrive.outbox.due_at is 'Not handed out before; null once delivered or failed.';
comment on column redrive.outbox.lease_token is 'Whoever claimed the row last. Only its owner may change it.';
comment on column redrive.outbox.generation is 'Given by whoever replays: which generation of the code should handle it.';
comment on column redrive.outbox.lapses is 'Leases that ran out: the times a consumer took it and was never heard of again.';
comment on column redrive.outbox.lane is 'Events of one lane are handled in order by consumers that ask for it.';
comment on column redrive.outbox.key is 'Business idempotency key, the same through retries and replays; the id when null.';
comment on column redrive.outbox.cycle is 'Attempts of the current cycle. Additive only.';
comment on column redrive.outbox.failure_history is 'Closed cycles, oldest first: one for each replay. Additive only.';
comment on column redrive.outbox.deleted_at is 'Discarded, or taken over by the control plane; kept until its partition goes.';

-- From 2 KB on out of line, uncompressed: claiming, retrying and finishing rewrite the row, and a large
-- body, which never changes, must not be written again each time.
alter table redrive.outbox alter column payload set storage external;

-- Unfinished rows only, so it stays as small as the backlog however many rows are done. None of its
-- columns changes with a claim, nor do those of any other index: with room in the page the claim is
-- a HOT update and no index hears of it. That is why no index may ever mention status.
create index outbox_due on redrive.outbox (queue, due_at) where due_at is not null;
-- For consumers that keep the order of lanes: the head of each lane, and what has no lane.
create index outbox_lane on redrive.outbox (queue, lane, position) where due_at is not null and lane is not null;
create index outbox_no_lane on redrive.outbox (queue, due_at) where due_at is not null and lane is null;
-- Dead letters.
create index outbox_failed on redrive.outbox (queue, failed_at) where failed_at is not null and deleted_at is null;

-- What is done with a partition as soon as it is made; settings are not inherited.
create function redrive.outbox_settle_partition(partition regclass) returns void
language plpgsql as $$
begin
  execute format('alter table %s set (
    -- Half of each page is kept free, for the claim to stay in the page.
    fillfactor = 50,
    -- A queue makes dead rows as fast as live ones: clean up after 1,000 of them and not after a
    -- fifth of the table, and without pauses.
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 100000,
    autovacuum_vacuum_cost_delay = 0)', partition);
end
$$;

-- Nothing is refused because a partition is missing.
create table redrive.outbox_default partition of redrive.outbox default;
select redrive.outbox_settle_partition('redrive.outbox_default');

-- The partition of a day. Attached and not created in place: that would lock out everyone.
create function redrive.outbox_make_partition(day date) returns boolean
language plpgsql as $$
declare
  name text := 'outbox_' || to_char(day, 'YYYYMMDD');
begin
  if to_regclass('redrive.' || name) is not null then return false; end if;
  execute format('create table redrive.%I (like redrive.outbox including defaults including constraints including storage)', name);
  perform redrive.outbox_settle_partition(('redrive.' || quote_ident(name))::regclass);
  execute format('alter table redrive.outbox attach partition redrive.%I for values from (%L) to (%L)', name,
    redrive.uuid_floor(day::timestamp at time zone 'UTC'),
    redrive.uuid_floor((day + 1)::timestamp at time zone 'UTC'));
  return true;
end
$$;

-- Business keys already handled. Its row is written in the transaction of the handler.
create table redrive.event_handled (
  consumer text not null,
  key text not null,
  fingerprint text not null,
  handled_at timestamptz not null default now(),
  primary key (consumer, key)
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.05);
comment on table redrive.event_handled is 'Inbox: business keys already handled, by consumer.';
-- By age, to forget the oldest. Rows come in the order of their age, which is all that BRIN needs.
create index event_handled_age on redrive.event_handled using brin (handled_at);
`
