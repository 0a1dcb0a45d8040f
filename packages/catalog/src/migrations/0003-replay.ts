/**
 * Replays. A run is a frozen list of items: what goes out was decided when it was planned, whatever
 * arrives later. The rules that must hold whatever happens are indexes and a trigger, not code.
 */
export const REPLAY: string = String.raw`
-- Earlier cycles of a dead letter that was replayed and failed again; the last one is in dead_letter.
create table redrive_catalog.failure_cycle (
  dead_letter_id uuid not null,
  cycle integer not null,
  group_id uuid not null,
  replay_id uuid not null,
  first_failed_at timestamptz not null,
  last_failed_at timestamptz not null,
  attempts integer not null,
  reason text not null,
  history jsonb not null,
  primary key (dead_letter_id, cycle)
);
comment on column redrive_catalog.failure_cycle.replay_id is 'The replay that ended this cycle and opened the next.';

-- Bodies as they were before someone edited them and the edited one failed again.
create table redrive_catalog.payload_before (
  like redrive_catalog.dead_letter_payload,
  cycle integer not null,
  primary key (dead_letter_id, cycle, part)
);
alter table redrive_catalog.payload_before alter column bytes set storage external;

create table redrive_catalog.replay_run (
  id uuid primary key,
  source_id integer not null references redrive_catalog.source,
  -- Named by whoever asked: the same question again is answered with the same run.
  request text collate "C" unique,
  state text collate "C" not null default 'planned',
  -- Over everything that decides what goes out, where and how fast. An approval names it.
  hash text not null,
  asked jsonb not null,
  options jsonb not null,
  change jsonb,
  note text not null,
  planned_by text not null,
  -- Whole milliseconds, as pages name them.
  planned_at timestamptz not null default date_trunc('milliseconds', clock_timestamp()),
  approved_by text,
  approved_at timestamptz,
  -- What was seen before is not held against it after someone let it go on.
  resumed_at timestamptz,
  resumed_by text,
  paused_at timestamptz,
  paused_because text,
  ended_at timestamptz,
  claimed_at timestamptz,
  failing_turns integer not null default 0,
  -- How many items are in each state; kept by a trigger.
  planned integer not null default 0,
  skipped integer not null default 0,
  queued integer not null default 0,
  claimed integer not null default 0,
  publishing integer not null default 0,
  published integer not null default 0,
  resolved integer not null default 0,
  refailed integer not null default 0,
  unknown integer not null default 0,
  expired integer not null default 0,
  cancelled integer not null default 0,
  constraint replay_run_state check (state in ('planned', 'running', 'paused', 'done', 'cancelled', 'lapsed'))
) with (fillfactor = 50);
-- Those with work left are few; nobody looks through the others for them.
create index replay_run_live on redrive_catalog.replay_run (source_id) where state in ('planned', 'running', 'paused');
create index replay_run_newest on redrive_catalog.replay_run (planned_at desc, id desc);

create table redrive_catalog.replay_item (
  run_id uuid not null references redrive_catalog.replay_run,
  place integer not null,
  dead_letter_id uuid not null,
  -- Made of the dead letter and its cycle: the same whoever publishes it, however often.
  replay_id uuid not null,
  cycle integer not null,
  -- Of the dead letter when it was planned: if it has another one since, someone dealt with it.
  version integer not null,
  state text collate "C" not null,
  -- Why it was skipped, sent back or given up.
  reason text,
  -- The run that has it, when that is why.
  other_run uuid,
  -- Of the body that is published. Set by the plan when the run changes the body, otherwise before the first publish.
  content_sha256 bytea,
  lease_token bigint not null default 0,
  lease_until timestamptz,
  publishes integer not null default 0,
  published_at timestamptz,
  settled_at timestamptz,
  proof text,
  primary key (run_id, place),
  constraint replay_item_state check (state in ('planned', 'skipped', 'queued', 'claimed', 'publishing', 'published',
    'resolved', 'refailed', 'unknown', 'expired', 'cancelled'))
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
-- One active replay of a dead letter, whatever two people do at once. Unknown is active: its replay may
-- still be on its way, so another one needs a person who says so.
create unique index replay_item_active on redrive_catalog.replay_item (dead_letter_id)
  where state in ('queued', 'claimed', 'publishing', 'published', 'unknown');
-- A replay id was on the wire for one item only.
create unique index replay_item_replay on redrive_catalog.replay_item (replay_id)
  where state in ('queued', 'claimed', 'publishing', 'published', 'resolved', 'refailed', 'unknown', 'expired');
create index replay_item_dead_letter on redrive_catalog.replay_item (dead_letter_id);
create index replay_item_work on redrive_catalog.replay_item (run_id, state, place)
  where state in ('queued', 'claimed', 'publishing', 'published');
create index replay_item_latest on redrive_catalog.replay_item (run_id, settled_at desc)
  where state in ('resolved', 'refailed');
create sequence redrive_catalog.replay_token;

create function redrive_catalog.count_items() returns trigger
language plpgsql as $$
begin
  -- In the order of ids, as everywhere: an update that meets two runs must not wait in a circle.
  perform from redrive_catalog.replay_run
    where id in (select run_id from was union select run_id from becomes) order by id for no key update;
  update redrive_catalog.replay_run r set
      planned = r.planned + d.planned, skipped = r.skipped + d.skipped, queued = r.queued + d.queued,
      claimed = r.claimed + d.claimed, publishing = r.publishing + d.publishing,
      published = r.published + d.published, resolved = r.resolved + d.resolved,
      refailed = r.refailed + d.refailed, unknown = r.unknown + d.unknown,
      expired = r.expired + d.expired, cancelled = r.cancelled + d.cancelled
    from (
      select run_id,
          sum(n) filter (where state = 'planned') as planned, sum(n) filter (where state = 'skipped') as skipped,
          sum(n) filter (where state = 'queued') as queued, sum(n) filter (where state = 'claimed') as claimed,
          sum(n) filter (where state = 'publishing') as publishing,
          sum(n) filter (where state = 'published') as published,
          sum(n) filter (where state = 'resolved') as resolved,
          sum(n) filter (where state = 'refailed') as refailed,
          sum(n) filter (where state = 'unknown') as unknown,
          sum(n) filter (where state = 'expired') as expired,
          sum(n) filter (where state = 'cancelled') as cancelled
        from (
          select run_id, state, 1 as n from becomes union all select run_id, state, -1 from was
          -- A zero for every state, so that no sum is null.
          union all select run_id, s.state, 0 from (select run_id from becomes union select run_id from was) r
            cross join unnest(array['planned', 'skipped', 'queued', 'claimed', 'publishing', 'published', 'resolved',
              'refailed', 'unknown', 'expired', 'cancelled']) as s (state)
        ) moves
        group by run_id
    ) d
    where r.id = d.run_id;
  return null;
end
$$;
create trigger replay_item_moved after update on redrive_catalog.replay_item
  referencing old table as was new table as becomes
  for each statement execute function redrive_catalog.count_items();

-- One rate for all who replay into a source: each publish takes its share of time from this row.
create table redrive_catalog.replay_rate (
  source_id integer primary key references redrive_catalog.source,
  next_at timestamptz not null default now()
) with (fillfactor = 50);

-- Which database this is. A restored copy says something else about itself than what is written here.
create table redrive_catalog.replay_epoch (
  is_only boolean primary key default true check (is_only),
  identity text not null,
  -- Grows while anybody replays: one that is smaller than it was is an earlier state.
  beat bigint not null default 0,
  frozen_at timestamptz,
  frozen_because text,
  acknowledged_by text,
  acknowledged_at timestamptz
) with (fillfactor = 50);
-- A restored cluster has another timeline or identifier, a restored database another number, and a restored
-- table as well; what is written in the table is the one it was written in.
create function redrive_catalog.identity() returns text
language sql stable as $$
  select concat_ws('/', s.system_identifier, c.timeline_id,
      (select oid from pg_database where datname = current_database()), 'redrive_catalog.replay_epoch'::regclass::oid)
    from pg_control_system() s, pg_control_checkpoint() c
$$;
insert into redrive_catalog.replay_epoch (identity) values (redrive_catalog.identity());

-- What consumers expect of a body: a JSON Schema, for one type of event or for all.
create table redrive_catalog.source_schema (
  source_id integer not null references redrive_catalog.source,
  type text collate "C" not null default '',
  schema jsonb not null,
  captured_at timestamptz not null default now(),
  primary key (source_id, type)
);

alter table redrive_catalog.source add column auto_replay jsonb;
comment on column redrive_catalog.source.auto_replay is 'Who allowed replays without a person, and how; null: nobody did.';
`
