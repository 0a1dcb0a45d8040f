/**
 * The outbox and the inbox. Each choice has its reason next to it. In short: a claim must not depend on
 * statistics, must not change an index, and must not become slow when vacuum is blocked.
 */
export const OUTBOX: string = String.raw`
-- A UUIDv7 starts with the time, so a range of ids is a range of time. PostgreSQL 18 has its own uuidv7();
-- this function works on all versions.
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

-- Returns the smallest id of that time: the lower bound of a partition.
create function redrive.uuid_floor(moment timestamptz) returns uuid
language sql stable parallel safe as $$
  select rpad(lpad(to_hex((extract(epoch from moment) * 1000)::bigint), 12, '0'), 32, '0')::uuid
$$;

-- Order of adding. A sequence is used instead of the id, because the clocks of servers differ.
create sequence redrive.outbox_position;
-- One number per claim; the highest number is the owner.
create sequence redrive.lease_token;

-- Partitioned by id, and therefore by time: finished rows are dropped with their day instead of one by one,
-- and the id alone stays the primary key.
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
  -- Compared byte by byte: names need no language rules, and claims compare many of them.
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
  -- The index of due rows uses due_at only: a waiting row without it would never be found.
  constraint outbox_due check ((due_at is not null) = (status in ('pending', 'in_flight'))),
  constraint outbox_failed check ((failed_at is not null) = (status = 'failed'))
) partition by range (id);

comment on table redrive.outbox is 'Events to be handled or relayed. Dead letters are the rows with status failed.';
comment on column redrive.outbox.position is 'Order of adding, and within a lane the order of handling.';
comment on column redrive.outbox.due_at is 'Earliest time of delivery; null after it was delivered or failed.';
comment on column redrive.outbox.lease_token is 'Number of the last claim. Only the consumer with this number may change the row.';
comment on column redrive.outbox.generation is 'Generation of the code that should handle the event, set by a replay.';
comment on column redrive.outbox.lapses is 'Number of expired leases: how often a consumer claimed the row and then crashed or disconnected.';
comment on column redrive.outbox.lane is 'Consumers with lane order handle events of one lane in order.';
comment on column redrive.outbox.key is 'Business idempotency key, unchanged by retries and replays; null means the id.';
comment on column redrive.outbox.cycle is 'Attempts of the current cycle. Releases only add fields.';
comment on column redrive.outbox.failure_history is 'Closed cycles, oldest first, one per replay. Releases only add fields.';
comment on column redrive.outbox.deleted_at is 'Time when the row was discarded or drained by the control plane. The row stays until its partition is dropped.';

-- A body of 2 KB or more is stored out of line, uncompressed. Claiming, retrying and finishing rewrite the
-- row, and a large body, which never changes, must not be written again each time.
alter table redrive.outbox alter column payload set storage external;

-- Unfinished rows only, so the index is as small as the backlog. A claim changes no column of this or any
-- other index: with room in the page, the claim is a HOT update and no index is written. This is why no
-- index may contain status.
create index outbox_due on redrive.outbox (queue, due_at) where due_at is not null;
-- For consumers with lane order: the first row of each lane, and rows without a lane.
create index outbox_lane on redrive.outbox (queue, lane, position) where due_at is not null and lane is not null;
create index outbox_no_lane on redrive.outbox (queue, due_at) where due_at is not null and lane is null;
-- Dead letters.
create index outbox_failed on redrive.outbox (queue, failed_at) where failed_at is not null and deleted_at is null;

-- Sets the options of a new partition, because partitions do not inherit them.
create function redrive.outbox_settle_partition(partition regclass) returns void
language plpgsql as $$
begin
  execute format('alter table %s set (
    -- Half of each page stays free, so that a claim can stay in the page.
    fillfactor = 50,
    -- A queue creates dead rows as fast as live ones. Vacuum after 1,000 of them, not after a fifth of
    -- the table, and without pauses.
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 100000,
    autovacuum_vacuum_cost_delay = 0)', partition);
end
$$;

-- Stores rows whose partition is missing.
create table redrive.outbox_default partition of redrive.outbox default;
select redrive.outbox_settle_partition('redrive.outbox_default');

-- Creates the partition of a day. It is attached, because creating it in place would block all statements.
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

-- Handled business keys. The row is written in the transaction of the handler.
create table redrive.event_handled (
  consumer text not null,
  key text not null,
  fingerprint text not null,
  handled_at timestamptz not null default now(),
  primary key (consumer, key)
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.05);
comment on table redrive.event_handled is 'Inbox: handled business keys per consumer.';
-- By age, to delete the oldest keys. Rows are inserted in the order of their age, as BRIN requires.
create index event_handled_age on redrive.event_handled using brin (handled_at);
`
