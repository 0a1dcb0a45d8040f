/**
 * The tables of the catalog. Comments give the reason for each choice. In short: the cost of a list must not depend
 * on the number of rows, a count must not read rows, and old rows are dropped with the partition of their day.
 */
export const TABLES: string = String.raw`
-- Returns the smallest id of a timestamp. Ids start with the time of the first failure, so a day is a range of ids.
create function redrive_catalog.id_floor(moment timestamptz) returns uuid
language sql stable parallel safe as $$
  select rpad(lpad(to_hex((extract(epoch from moment) * 1000)::bigint), 12, '0'), 32, '0')::uuid
$$;

-- Sources of dead letters.
create table redrive_catalog.source (
  id integer generated always as identity primary key,
  -- Compared byte by byte, without the rules of a language.
  name text collate "C" not null unique,
  handler text,
  retention interval not null,
  created_at timestamptz not null default now()
);
comment on column redrive_catalog.source.retention is 'How long a dead letter is kept after its ingest.';

-- Partitioned by id, which means by the day of the first failure. A day is dropped with its partition and not row
-- by row, and the id alone is the primary key. The id is computed from the content of the dead letter, so a second
-- ingest finds the existing row.
create table redrive_catalog.dead_letter (
  id uuid not null primary key,
  group_id uuid not null,
  first_failed_at timestamptz not null,
  last_failed_at timestamptz not null,
  ingested_at timestamptz not null default now(),
  settled_at timestamptz,
  source_id integer not null,
  attempts integer not null,
  cycle integer not null,
  version integer not null default 0,
  payload_bytes integer not null,
  is_quarantined boolean not null,
  is_tombstone boolean not null,
  status text collate "C" not null default 'open',
  class text collate "C" not null,
  reason text not null,
  code text,
  type text collate "C",
  message_id text not null,
  key text collate "C" not null,
  lane text,
  origin text not null,
  content_type text,
  message text not null,
  settled_by text,
  headers jsonb not null,
  history jsonb not null,
  constraint dead_letter_status check (status in ('open', 'replaying', 'unknown', 'resolved', 'discarded', 'expired')),
  constraint dead_letter_times check (first_failed_at <= last_failed_at)
) partition by range (id);
comment on table redrive_catalog.dead_letter is 'Dead letters for display; long texts are shortened. Replays use dead_letter_payload.';
comment on column redrive_catalog.dead_letter.version is 'Increases with every change of status. A caller passes the version it has read, to detect changes.';
comment on column redrive_catalog.dead_letter.headers is 'The headers for display, bounded and masked.';
comment on column redrive_catalog.dead_letter.history is 'The attempts of the cycle, oldest first.';

-- For lists. Status is before time, so the open rows of a group are found fast, even among a million resolved rows.
-- A list of several statuses or groups merges short scans, one for each. The cost: a change of status is not a HOT
-- update. A status changes two or three times in the life of a dead letter, but lists are read all day.
create index dead_letter_group on redrive_catalog.dead_letter (group_id, status, last_failed_at desc, id desc);
-- The same for lists without a group.
create index dead_letter_source on redrive_catalog.dead_letter (source_id, status, last_failed_at desc, id desc);
-- For searches by business key, such as order 4711.
create index dead_letter_key on redrive_catalog.dead_letter (key);

-- The bodies, in a separate table to keep lists fast. Part 0 has everything except the rest of a large body.
create table redrive_catalog.dead_letter_payload (
  dead_letter_id uuid not null,
  part integer not null,
  bytes bytea not null,
  -- The message without its body, encoded exactly as it arrived; part 0 only.
  wire bytea,
  -- Id of the outer key, which encrypts the key of this dead letter; null if the payload is not encrypted.
  key_id text,
  wrapped_key bytea,
  -- The body as JSON, masked, for display and filters. It is never replayed.
  preview jsonb,
  primary key (dead_letter_id, part)
) partition by range (dead_letter_id);
-- Stored uncompressed and out of line, because bodies are often compressed or encrypted already and never change.
alter table redrive_catalog.dead_letter_payload alter column bytes set storage external;

-- Values that the ingest extracts from bodies for searches. An index over whole bodies would cost more than the rest
-- of the ingest.
create table redrive_catalog.dead_letter_lookup (
  dead_letter_id uuid not null,
  name text collate "C" not null,
  value text collate "C" not null,
  primary key (dead_letter_id, name)
) partition by range (dead_letter_id);
create index dead_letter_lookup_value on redrive_catalog.dead_letter_lookup (name, value, dead_letter_id desc);

-- Groups of similar failures of one source. The transaction that adds dead letters also updates the counts here, so
-- no query counts rows.
create table redrive_catalog.failure_group (
  id uuid primary key,
  source_id integer not null references redrive_catalog.source,
  algorithm integer not null,
  signature text collate "C" not null,
  class text collate "C" not null,
  code text,
  title text not null,
  sample text not null,
  state text collate "C" not null default 'open',
  is_regressed boolean not null default false,
  owner text,
  muted_until timestamptz,
  first_seen_at timestamptz not null,
  last_seen_at timestamptz not null,
  resolved_at timestamptz,
  regressed_at timestamptz,
  created_at timestamptz not null default now(),
  count bigint not null default 0,
  open_count bigint not null default 0,
  attempts bigint not null default 0,
  constraint failure_group_state check (state in ('open', 'muted', 'resolved'))
) with (
  -- Every batch updates some rows. No index contains the changed columns. With free space in the page the update is
  -- HOT and changes no index.
  fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500,
  autovacuum_vacuum_cost_delay = 0);
-- The groups of a source. There are thousands at most, so each read sorts them. An index by last_seen_at would change
-- with every batch.
create index failure_group_source on redrive_catalog.failure_group (source_id);

-- Counts of dead letters by the time of their last failure: one row for each group and minute.
create table redrive_catalog.group_minute (
  group_id uuid not null,
  minute timestamptz not null,
  count integer not null,
  primary key (group_id, minute)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
-- By age, to delete old minutes. Rows are added in the order of time, so a BRIN index is enough.
create index group_minute_age on redrive_catalog.group_minute using brin (minute);

create table redrive_catalog.group_hour (
  group_id uuid not null,
  hour timestamptz not null,
  count integer not null,
  primary key (group_id, hour)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);

-- Number of dead letters of a source by the day of their first failure, and how many expired. These rows stay when
-- the dead letters are deleted.
create table redrive_catalog.source_day (
  source_id integer not null references redrive_catalog.source,
  day date not null,
  count bigint not null,
  last_ingested_at timestamptz not null,
  expired_at timestamptz,
  expired jsonb not null default '{}',
  primary key (source_id, day)
) with (fillfactor = 70);
comment on column redrive_catalog.failure_group.created_at is 'When the catalog created the group; first_seen_at is the time of its first failure.';
comment on column redrive_catalog.source_day.expired is 'Number of expired dead letters by their last status.';

-- The time when a dead letter without a failure time was first seen. Its id needs a timestamp, which must be the same
-- at every ingest.
create table redrive_catalog.undated (
  identity uuid primary key,
  seen_at timestamptz not null default date_trunc('milliseconds', now())
);

-- Messages that could not be stored as dead letters: the start of the body and the hash of the whole body.
create table redrive_catalog.ingest_quarantine (
  id bigint generated always as identity primary key,
  -- A second ingest of the same message uses the same row.
  identity uuid not null unique,
  source_id integer not null references redrive_catalog.source,
  quarantined_at timestamptz not null default now(),
  reason text not null,
  message_id text not null,
  payload_bytes bigint not null,
  sha256 bytea not null,
  head bytea not null
);

-- Comments of users on a dead letter or a group.
create table redrive_catalog.comment (
  id bigint generated always as identity primary key,
  subject uuid not null,
  author text not null,
  text text not null,
  written_at timestamptz not null default now()
);
create index comment_subject on redrive_catalog.comment (subject, id);
`
