/** Tables of the server: identity, audit log, alerts and idempotency. The catalog has its own tables. */
export const TABLES: string = String.raw`
-- Users who logged in at least once, with the groups of their last login. The config maps groups to
-- permissions at every request.
create table redrive_server.person (
  -- Issuer and subject, separated by #. An issuer cannot contain #.
  id text collate "C" primary key,
  name text not null,
  groups text[] not null,
  logged_in_at timestamptz not null default now()
);

-- Logins that wait for the callback from the provider. The first callback deletes the row.
create table redrive_server.login (
  secret_hash bytea primary key,
  state text not null,
  nonce text not null,
  verifier text not null,
  return_to text not null,
  expires_at timestamptz not null
);
create index login_expiry on redrive_server.login (expires_at);

-- Contains only the hash of the secret, so a reader of this table cannot use a session.
create table redrive_server.session (
  secret_hash bytea primary key,
  id uuid not null unique,
  person_id text collate "C" not null references redrive_server.person,
  created_at timestamptz not null default now(),
  seen_at timestamptz not null default now()
);
create index session_age on redrive_server.session (created_at);

create table redrive_server.token (
  id uuid primary key,
  secret_hash bytea not null,
  name text not null,
  person_id text collate "C" not null references redrive_server.person,
  is_agent boolean not null,
  -- Upper limit of its permissions. The permissions of its owner limit it further at every request.
  actions text[] not null,
  sources text[] not null,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null,
  last_used_at timestamptz
);
create index token_person on redrive_server.token (person_id);

-- A hash chain: each entry contains the hash of the previous one. src/audit/chain.ts defines the hash.
create table redrive_server.audit (
  sequence bigint primary key,
  at_ms bigint not null,
  person text collate "C" not null,
  via text not null,
  operation text collate "C" not null,
  outcome text not null,
  source text collate "C",
  subject text collate "C",
  -- Text and not JSON, because the hash covers the exact characters.
  facts text not null,
  previous bytea not null,
  hash bytea not null
);
create index audit_person on redrive_server.audit (person, sequence);
create index audit_source on redrive_server.audit (source, sequence);
create index audit_subject on redrive_server.audit (subject, sequence);

-- The last entry of the chain. Every writer locks this row first, so that there is only one chain.
create table redrive_server.audit_head (
  only_one boolean primary key default true check (only_one),
  sequence bigint not null,
  hash bytea not null
) with (fillfactor = 10);
insert into redrive_server.audit_head (sequence, hash) values (0, decode(repeat('00', 32), 'hex'));

create function redrive_server.refuse_change() returns trigger language plpgsql as $$
begin
  raise exception 'The audit log is append-only: % on %.% is not allowed.', tg_op, tg_table_schema, tg_table_name
    using errcode = 'restrict_violation';
end $$;
create trigger audit_kept before update or delete or truncate on redrive_server.audit
  for each statement execute function redrive_server.refuse_change();
create trigger audit_head_kept before delete or truncate on redrive_server.audit_head
  for each statement execute function redrive_server.refuse_change();
create trigger audit_head_grows before update on redrive_server.audit_head
  for each row when (new.sequence <= old.sequence) execute function redrive_server.refuse_change();
-- Enabled in logical replicas as well. The owner can still drop the triggers; signed checkpoints outside the
-- database detect a change made that way.
alter table redrive_server.audit enable always trigger audit_kept;
alter table redrive_server.audit_head enable always trigger audit_head_kept;
alter table redrive_server.audit_head enable always trigger audit_head_grows;

-- Active alerts by webhook. One process delivers each alert once while it is active.
create table redrive_server.alert (
  target text collate "C" not null,
  key text collate "C" not null,
  -- New when an ended alert becomes active again.
  id uuid not null default gen_random_uuid(),
  held_at timestamptz not null default now(),
  claimed_until timestamptz,
  told_at timestamptz,
  primary key (target, key)
);

-- Responses to mutations by Idempotency-Key, so that a repeated request is not applied twice.
create table redrive_server.idempotency (
  caller text collate "C" not null,
  key text collate "C" not null,
  operation text not null,
  request_hash bytea not null,
  -- Identifies the attempt. An attempt that another one replaced does not store its response.
  work uuid not null,
  taken_at timestamptz not null default clock_timestamp(),
  -- Null while the request is in progress.
  status smallint,
  -- Response body; null if there was none or if it contained a secret.
  answer text,
  etag text,
  primary key (caller, key)
);
create index idempotency_age on redrive_server.idempotency (taken_at);
`
