/** The tables for messages that cannot be catalogued as dead letters. They replace ingest_quarantine. */
export const SET_ASIDE: string = String.raw`
-- Messages that cannot be catalogued as dead letters, kept whole. The id is computed from the content of the message,
-- so a second ingest finds the existing row.
create table redrive_catalog.set_aside (
  id uuid primary key,
  source_id integer not null references redrive_catalog.source,
  -- In whole ms, because pages continue after a time in ms.
  set_aside_at timestamptz not null default date_trunc('milliseconds', now()),
  reason text collate "C" not null,
  explanation text not null,
  message_id text not null,
  key text not null,
  type text,
  origin text not null,
  content_type text,
  payload_bytes bigint not null,
  kept_bytes bigint not null,
  is_complete boolean not null default true,
  sha256 bytea not null,
  status text collate "C" not null default 'open',
  requested_by text,
  settled_at timestamptz,
  replay_error text,
  without_headers text[] not null default '{}',
  constraint set_aside_status check (status in ('open', 'requested', 'replaying', 'replayed', 'discarded'))
);
-- For lists and counts. There are few open rows; the settled ones stay until retention deletes them.
create index set_aside_source on redrive_catalog.set_aside (source_id, status, set_aside_at desc, id desc);
comment on column redrive_catalog.set_aside.reason is 'Code of the reason; explanation is the same as a sentence.';
comment on column redrive_catalog.set_aside.is_complete is 'False for rows of ingest_quarantine: they have no headers, and at most 64 KiB of the body.';
comment on column redrive_catalog.set_aside.without_headers is 'Names of headers that the requested replay leaves out.';
comment on column redrive_catalog.set_aside.replay_error is 'Why the last replay failed. The message is open again.';

-- The bodies in parts, and the message without its body. Encrypted in the same way as dead_letter_payload.
create table redrive_catalog.set_aside_payload (
  set_aside_id uuid not null references redrive_catalog.set_aside on delete cascade,
  part integer not null,
  bytes bytea not null,
  -- Everything except the body, part 0 only; null for rows of ingest_quarantine.
  wire bytea,
  key_id text,
  wrapped_key bytea,
  primary key (set_aside_id, part)
);
alter table redrive_catalog.set_aside_payload alter column bytes set storage external;

-- Earlier releases kept only the start of the body and its hash.
insert into redrive_catalog.set_aside
    (id, source_id, set_aside_at, reason, explanation, message_id, key, origin, payload_bytes, kept_bytes, is_complete,
      sha256)
  select q.identity, q.source_id, date_trunc('milliseconds', q.quarantined_at),
      case when q.reason like 'the body has %' then 'body_too_large'
        when q.reason like 'the headers cannot be stored%' then 'headers_not_storable'
        else 'rejected_by_database' end,
      q.reason, q.message_id, q.message_id, s.name, q.payload_bytes, octet_length(q.head), false, q.sha256
    from redrive_catalog.ingest_quarantine q join redrive_catalog.source s on s.id = q.source_id;
insert into redrive_catalog.set_aside_payload (set_aside_id, part, bytes)
  select identity, 0, head from redrive_catalog.ingest_quarantine;
drop table redrive_catalog.ingest_quarantine;
`
