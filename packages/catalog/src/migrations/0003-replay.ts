/**
 * The tables of replays. A run is a fixed list of items: the plan decides what is published, and later dead letters
 * do not change it. Indexes and a trigger enforce the most important rules, not application code.
 */
export const REPLAY: string = String.raw`
-- Earlier cycles of dead letters that were replayed and failed again. The current cycle is in dead_letter.
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
comment on column redrive_catalog.failure_cycle.replay_id is 'The replay that ended this cycle and started the next.';

-- Original bodies of dead letters that were edited for a replay and failed again.
create table redrive_catalog.payload_before (
  like redrive_catalog.dead_letter_payload,
  cycle integer not null,
  primary key (dead_letter_id, cycle, part)
);
alter table redrive_catalog.payload_before alter column bytes set storage external;

create table redrive_catalog.replay_run (
  id uuid primary key,
  source_id integer not null references redrive_catalog.source,
  -- Name of the request, set by the caller. A second request with this name returns the same run.
  request text collate "C" unique,
  state text collate "C" not null default 'planned',
  -- Hash of everything that determines what is published, where and how fast. An approval must contain it.
  hash text not null,
  asked jsonb not null,
  options jsonb not null,
  change jsonb,
  note text not null,
  planned_by text not null,
  -- Whole milliseconds, because page cursors contain milliseconds.
  planned_at timestamptz not null default date_trunc('milliseconds', clock_timestamp()),
  approved_by text,
  approved_at timestamptz,
  -- Outcomes before this time do not pause the run again after a user has resumed it.
  resumed_at timestamptz,
  resumed_by text,
  paused_at timestamptz,
  paused_because text,
  ended_at timestamptz,
  claimed_at timestamptz,
  failing_turns integer not null default 0,
  -- Number of items in each state, updated by a trigger.
  planned integer not null default 0,
  skipped integer not null default 0,
  queued integer not null default 0,
  claimed integer not null default 0,
  publishing integer not null default 0,
  published integer not null default 0,
  resolved integer not null default 0,
  failed_again integer not null default 0,
  unknown integer not null default 0,
  expired integer not null default 0,
  cancelled integer not null default 0,
  constraint replay_run_state check (state in ('planned', 'running', 'paused', 'done', 'cancelled', 'plan_expired'))
) with (fillfactor = 50);
-- Runs with remaining work. There are few, and this index avoids a scan over all other runs.
create index replay_run_live on redrive_catalog.replay_run (source_id) where state in ('planned', 'running', 'paused');
create index replay_run_newest on redrive_catalog.replay_run (planned_at desc, id desc);

create table redrive_catalog.replay_item (
  run_id uuid not null references redrive_catalog.replay_run,
  place integer not null,
  dead_letter_id uuid not null,
  -- Computed from the dead letter and its cycle: the same for every worker and every repeated publish.
  replay_id uuid not null,
  cycle integer not null,
  -- Version of the dead letter in the plan. Another version at approval means that it has changed.
  version integer not null,
  state text collate "C" not null,
  -- Why it was skipped, returned to the queue or not replayed.
  reason text,
  -- The other run that contains the dead letter, if this is the reason.
  other_run uuid,
  -- Hash of the published body. Set by the plan if the run changes the body, otherwise before the first publish.
  content_sha256 bytea,
  lease_token bigint not null default 0,
  lease_until timestamptz,
  publishes integer not null default 0,
  published_at timestamptz,
  settled_at timestamptz,
  proof text,
  primary key (run_id, place),
  constraint replay_item_state check (state in ('planned', 'skipped', 'queued', 'claimed', 'publishing', 'published',
    'resolved', 'failed_again', 'unknown', 'expired', 'cancelled'))
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
-- At most one active replay of a dead letter, even if two users act at the same time. Unknown is active: its replay
-- may still take effect, so a user must set the outcome before another replay.
create unique index replay_item_active on redrive_catalog.replay_item (dead_letter_id)
  where state in ('queued', 'claimed', 'publishing', 'published', 'unknown');
-- A replay id is published for one item only.
create unique index replay_item_replay on redrive_catalog.replay_item (replay_id)
  where state in ('queued', 'claimed', 'publishing', 'published', 'resolved', 'failed_again', 'unknown', 'expired');
create index replay_item_dead_letter on redrive_catalog.replay_item (dead_letter_id);
create index replay_item_work on redrive_catalog.replay_item (run_id, state, place)
  where state in ('queued', 'claimed', 'publishing', 'published');
create index replay_item_latest on redrive_catalog.replay_item (run_id, settled_at desc)
  where state in ('resolved', 'failed_again');
create sequence redrive_catalog.replay_token;

create function redrive_catalog.count_items() returns trigger
language plpgsql as $$
begin
  -- Locks in the order of ids, as everywhere: updates of several runs must not deadlock.
  perform from redrive_catalog.replay_run
    where id in (select run_id from was union select run_id from becomes) order by id for no key update;
  update redrive_catalog.replay_run r set
      planned = r.planned + d.planned, skipped = r.skipped + d.skipped, queued = r.queued + d.queued,
      claimed = r.claimed + d.claimed, publishing = r.publishing + d.publishing,
      published = r.published + d.published, resolved = r.resolved + d.resolved,
      failed_again = r.failed_again + d.failed_again, unknown = r.unknown + d.unknown,
      expired = r.expired + d.expired, cancelled = r.cancelled + d.cancelled
    from (
      select run_id,
          sum(n) filter (where state = 'planned') as planned, sum(n) filter (where state = 'skipped') as skipped,
          sum(n) filter (where state = 'queued') as queued, sum(n) filter (where state = 'claimed') as claimed,
          sum(n) filter (where state = 'publishing') as publishing,
          sum(n) filter (where state = 'published') as published,
          sum(n) filter (where state = 'resolved') as resolved,
          sum(n) filter (where state = 'failed_again') as failed_again,
          sum(n) filter (where state = 'unknown') as unknown,
          sum(n) filter (where state = 'expired') as expired,
          sum(n) filter (where state = 'cancelled') as cancelled
        from (
          select run_id, state, 1 as n from becomes union all select run_id, state, -1 from was
          -- A zero for every state, so that no sum is null.
          union all select run_id, s.state, 0 from (select run_id from becomes union select run_id from was) r
            cross join unnest(array['planned', 'skipped', 'queued', 'claimed', 'publishing', 'published', 'resolved',
              'failed_again', 'unknown', 'expired', 'cancelled']) as s (state)
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

-- One publish rate for all workers of a source: each publish reserves its share of time in this row.
create table redrive_catalog.replay_rate (
  source_id integer primary key references redrive_catalog.source,
  next_at timestamptz not null default now()
) with (fillfactor = 50);

-- The identity of this database. In a restored copy, the actual identity differs from the stored one.
create table redrive_catalog.replay_epoch (
  is_only boolean primary key default true check (is_only),
  identity text not null,
  -- Liveness counter, which grows while any process replays. A smaller value than before is an earlier state.
  beat bigint not null default 0,
  frozen_at timestamptz,
  frozen_because text,
  acknowledged_by text,
  acknowledged_at timestamptz
) with (fillfactor = 50);
-- A restored cluster has another timeline or identifier. A restored database or table has another OID. The table
-- still contains the identity at the time when it was written.
create function redrive_catalog.identity() returns text
language sql stable as $$
  select concat_ws('/', s.system_identifier, c.timeline_id,
      (select oid from pg_database where datname = current_database()), 'redrive_catalog.replay_epoch'::regclass::oid)
    from pg_control_system() s, pg_control_checkpoint() c
$$;
insert into redrive_catalog.replay_epoch (identity) values (redrive_catalog.identity());

-- JSON Schemas for the bodies of a source, for one event type or for all.
create table redrive_catalog.source_schema (
  source_id integer not null references redrive_catalog.source,
  type text collate "C" not null default '',
  schema jsonb not null,
  captured_at timestamptz not null default now(),
  primary key (source_id, type)
);

alter table redrive_catalog.source add column auto_replay jsonb;
comment on column redrive_catalog.source.auto_replay is 'User who enabled automatic replays, and their options; null: disabled.';
`
