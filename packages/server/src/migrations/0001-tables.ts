/** What the server keeps beside the catalog: who may come in, and what everybody did. */
export const TABLES: string = String.raw`
-- Who has ever logged in. The groups are those of the last login: what they are worth is said by the
-- configuration, at every request.
create table redrive_server.person (
  -- Issuer and subject with a # between them: an issuer has none.
  id text collate "C" primary key,
  name text not null,
  groups text[] not null,
  logged_in_at timestamptz not null default now()
);

-- Logins that have begun and are not back from the provider. Taken out by the first who comes back.
create table redrive_server.login (
  secret_hash bytea primary key,
  state text not null,
  nonce text not null,
  verifier text not null,
  return_to text not null,
  expires_at timestamptz not null
);
create index login_expiry on redrive_server.login (expires_at);

-- Only the hash of the secret: whoever reads this table cannot be anybody.
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
  -- The most it may; what it may is that met with what its owner may at that moment.
  actions text[] not null,
  sources text[] not null,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null,
  last_used_at timestamptz
);
create index token_person on redrive_server.token (person_id);

-- A chain: each entry has the hash of the one before. How a hash is made is said in src/audit/chain.ts.
create table redrive_server.audit (
  sequence bigint primary key,
  at_ms bigint not null,
  person text collate "C" not null,
  via text not null,
  what text collate "C" not null,
  outcome text not null,
  source text collate "C",
  subject text collate "C",
  -- As text: the hash is over these very characters.
  facts text not null,
  previous bytea not null,
  hash bytea not null
);
create index audit_person on redrive_server.audit (person, sequence);
create index audit_source on redrive_server.audit (source, sequence);
create index audit_subject on redrive_server.audit (subject, sequence);

-- The last link. Whoever adds to the chain locks it first, so there is one chain whoever writes.
create table redrive_server.audit_head (
  only_one boolean primary key default true check (only_one),
  sequence bigint not null,
  hash bytea not null
) with (fillfactor = 10);
insert into redrive_server.audit_head (sequence, hash) values (0, decode(repeat('00', 32), 'hex'));

create function redrive_server.refuse_change() returns trigger language plpgsql as $$
begin
  raise exception 'The audit is only ever added to: % of %.% is refused.', tg_op, tg_table_schema, tg_table_name
    using errcode = 'restrict_violation';
end $$;
create trigger audit_kept before update or delete or truncate on redrive_server.audit
  for each statement execute function redrive_server.refuse_change();
create trigger audit_head_kept before delete or truncate on redrive_server.audit_head
  for each statement execute function redrive_server.refuse_change();
create trigger audit_head_grows before update on redrive_server.audit_head
  for each row when (new.sequence <= old.sequence) execute function redrive_server.refuse_change();
-- In replicas that apply changes as well. An owner can still take the triggers away: that is what signed
-- checkpoints outside of the database are for.
alter table redrive_server.audit enable always trigger audit_kept;
alter table redrive_server.audit_head enable always trigger audit_head_kept;
alter table redrive_server.audit_head enable always trigger audit_head_grows;

-- Alerts that hold, for each place they are told to: told once, by one of us, until they no longer hold.
create table redrive_server.alert (
  target text collate "C" not null,
  key text collate "C" not null,
  -- Names this time that it holds.
  id uuid not null default gen_random_uuid(),
  held_at timestamptz not null default now(),
  claimed_until timestamptz,
  told_at timestamptz,
  primary key (target, key)
);

-- What was answered to a mutation, so that asking again does not repeat it.
create table redrive_server.idempotency (
  caller text collate "C" not null,
  key text collate "C" not null,
  operation text not null,
  request_hash bytea not null,
  -- Names who works on it: one that was taken over does not write its answer.
  work uuid not null,
  taken_at timestamptz not null default clock_timestamp(),
  -- Null while it is worked on.
  status smallint,
  -- As it went out; null when there was none, or when it had a secret.
  answer text,
  etag text,
  primary key (caller, key)
);
create index idempotency_age on redrive_server.idempotency (taken_at);
`
