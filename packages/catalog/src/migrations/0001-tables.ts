/**
 * What the catalog keeps. Each choice says why beside it; the short form: a list must not depend on
 * how many rows there are, a count must not look at rows at all, and what is old goes with its day.
 */
export const TABLES: string = String.raw`
-- The smallest id of a moment: ids begin with the moment of the first failure, so a day is a range.
create function redrive_catalog.id_floor(moment timestamptz) returns uuid
language sql stable parallel safe as $$
  select rpad(lpad(to_hex((extract(epoch from moment) * 1000)::bigint), 12, '0'), 32, '0')::uuid
$$;

-- Where dead letters come from.
create table redrive_catalog.source (
  id integer generated always as identity primary key,
  -- Compared byte by byte: names are not for dictionaries.
  name text collate "C" not null unique,
  handler text,
  retention interval not null,
  created_at timestamptz not null default now()
);
comment on column redrive_catalog.source.retention is 'How long a dead letter is kept after it was ingested.';

-- Partitioned by id, that is by the day of the first failure: a day goes with its partition instead of
-- row by row, and the id alone is the primary key. The id is made from what the dead letter is, so
-- that ingesting it again meets its own key.
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
comment on table redrive_catalog.dead_letter is 'Dead letters as people read them; texts are clipped. What is replayed is in dead_letter_payload.';
comment on column redrive_catalog.dead_letter.version is 'Grows with every change of status: whoever changes it says which one was seen.';
comment on column redrive_catalog.dead_letter.headers is 'The readable part of the headers, bounded and masked.';
comment on column redrive_catalog.dead_letter.history is 'The attempts of the cycle, oldest first.';

-- Lists. Status comes before time: the open ones of a group are found at once although a million others
-- are resolved. A list of several statuses or groups is a merge of short scans, one for each. The price:
-- a change of status is no HOT update. It happens two or three times in the life of a dead letter;
-- reading happens all day.
create index dead_letter_group on redrive_catalog.dead_letter (group_id, status, last_failed_at desc, id desc);
-- The same where no group is named.
create index dead_letter_source on redrive_catalog.dead_letter (source_id, status, last_failed_at desc, id desc);
-- "What became of order 4711?"
create index dead_letter_key on redrive_catalog.dead_letter (key);

-- The bytes, out of the way of lists. Part 0 has everything but the tail of a large body.
create table redrive_catalog.dead_letter_payload (
  dead_letter_id uuid not null,
  part integer not null,
  bytes bytea not null,
  -- Everything about the message but its body, exactly as it came; part 0 only.
  wire bytea,
  -- The key that wraps the key of this dead letter; null when it is stored in the clear.
  key_id text,
  wrapped_key bytea,
  -- The body as JSON, masked, for people and filters. Never replayed.
  preview jsonb,
  primary key (dead_letter_id, part)
) partition by range (dead_letter_id);
-- Uncompressed and out of line: bodies are often compressed or encrypted already, and never change.
alter table redrive_catalog.dead_letter_payload alter column bytes set storage external;

-- Values of bodies that were asked for at ingest, to find dead letters by them: an index over whole
-- bodies would cost more than all the rest of the ingest.
create table redrive_catalog.dead_letter_lookup (
  dead_letter_id uuid not null,
  name text collate "C" not null,
  value text collate "C" not null,
  primary key (dead_letter_id, name)
) partition by range (dead_letter_id);
create index dead_letter_lookup_value on redrive_catalog.dead_letter_lookup (name, value, dead_letter_id desc);

-- Alike failures of one source. Counts are kept here, in the transaction that adds the dead letters:
-- nothing ever counts rows.
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
  -- Every batch updates some rows. No index mentions what changes, so with room in the page the update
  -- is HOT and no index hears of it.
  fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500,
  autovacuum_vacuum_cost_delay = 0);
-- The groups of a source. There are thousands at most, so they are sorted when they are read: an index
-- by last_seen_at would change with every batch.
create index failure_group_source on redrive_catalog.failure_group (source_id);

-- Dead letters by the time of their last failure. One row for each group, time and batch that meets it.
create table redrive_catalog.group_minute (
  group_id uuid not null,
  minute timestamptz not null,
  count integer not null,
  primary key (group_id, minute)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
-- By age, to forget minutes after a while. They come in the order of time, which is all that BRIN needs.
create index group_minute_age on redrive_catalog.group_minute using brin (minute);

create table redrive_catalog.group_hour (
  group_id uuid not null,
  hour timestamptz not null,
  count integer not null,
  primary key (group_id, hour)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);

-- How many came from a source with a first failure on that day, and what became of them: it stays when
-- they are gone.
create table redrive_catalog.source_day (
  source_id integer not null references redrive_catalog.source,
  day date not null,
  count bigint not null,
  last_ingested_at timestamptz not null,
  expired_at timestamptz,
  expired jsonb not null default '{}',
  primary key (source_id, day)
) with (fillfactor = 70);
comment on column redrive_catalog.failure_group.created_at is 'When the catalog first heard of it; first_seen_at is when it first failed.';
comment on column redrive_catalog.source_day.expired is 'How many expired, by the status they had.';

-- When a dead letter that does not say when it failed was first seen: its id needs a moment, and the
-- same one when it is ingested again.
create table redrive_catalog.undated (
  identity uuid primary key,
  seen_at timestamptz not null default date_trunc('milliseconds', now())
);

-- What could not be kept as a dead letter. The head of its body, and the hash of all of it.
create table redrive_catalog.ingest_quarantine (
  id bigint generated always as identity primary key,
  -- The same dead letter again is the same row.
  identity uuid not null unique,
  source_id integer not null references redrive_catalog.source,
  quarantined_at timestamptz not null default now(),
  reason text not null,
  message_id text not null,
  payload_bytes bigint not null,
  sha256 bytea not null,
  head bytea not null
);

-- What people said, about a dead letter or a group.
create table redrive_catalog.comment (
  id bigint generated always as identity primary key,
  subject uuid not null,
  author text not null,
  text text not null,
  written_at timestamptz not null default now()
);
create index comment_subject on redrive_catalog.comment (subject, id);
`
