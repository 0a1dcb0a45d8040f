import { ITEM_STATES } from './replay/run/states.ts'

/** The caller has locked the rows, so their statuses do not change between the two parts. */
export const CHANGE_STATUS: string = `
with before as materialized (
  select id, status from redrive_catalog.dead_letter where id = any($1::uuid[]) and status = any($4)
)
update redrive_catalog.dead_letter d set status = $2, version = d.version + 1, settled_at = clock_timestamp(), settled_by = $3
  from before b where d.id = any($1::uuid[]) and d.id = b.id returning d.group_id, b.status as was`

/**
 * Locks the groups, and the groups that they are merged into: the ingest locks them later, and the order of ids must be
 * kept.
 */
export const LOCK_GROUPS: string = `
select from redrive_catalog.failure_group
  where id = any($1::uuid[] || array(select p.root_id from redrive_catalog.failure_group p
    where p.id = any($1::uuid[]) and p.root_id is not null))
  order by id for no key update`

export const COUNT_STATUSES: string = `
update redrive_catalog.failure_group g set open_count = g.open_count + c.open,
    replaying_count = g.replaying_count + c.replaying, undecided_count = g.undecided_count + c.undecided
  from unnest($1::uuid[], $2::integer[], $3::integer[], $4::integer[]) as c (id, open, replaying, undecided)
  where g.id = c.id`

/** Creates the partitions of the next 7 days, so that none is missing when maintenance stops for a while. */
export const MAKE_DAYS: string = `
select redrive_catalog.make_days(array(
  select (now() at time zone 'UTC')::date + ahead from generate_series(0, 7) as ahead)) as made`

/** Days whose retention has ended for every source, if no row needs a decision. `drop_day` checks the rows. */
export const EXPIRED_DAYS: string = `
select d.day::text as day
  from redrive_catalog.source_day d join redrive_catalog.source s on s.id = d.source_id
  where to_regclass('redrive_catalog.dead_letter_' || to_char(d.day, 'YYYYMMDD')) is not null
  group by d.day having bool_and(d.last_ingested_at <= now() - s.retention) order by d.day`

/**
 * Days whose retention has ended for one source, while other rows keep them or they have no partition. The days
 * that were checked least recently come first: rows that need a decision can keep more days than one call checks.
 */
export const EXPIRED_SOURCE_DAYS: string = `
select d.source_id, d.day::text as day
  from redrive_catalog.source_day d join redrive_catalog.source s on s.id = d.source_id
  where d.last_ingested_at <= now() - s.retention and (d.expired_at is null or d.expired_at < d.last_ingested_at)
  order by d.checked_at nulls first, d.day limit 1000`

/** Keeps 3 days of counts per minute, which a trend by the minute shows. Skips locked rows. Keeps hours. */
const DELETE_MINUTES = `
delete from redrive_catalog.group_minute where (group_id, minute) in (
  select group_id, minute from redrive_catalog.group_minute
    where minute < now() - interval '3 days' for update skip locked)`

/** Deletes a row one day after the longest retention. It is only needed to recognise the same dead letter. */
const DELETE_UNDATED = `
delete from redrive_catalog.undated where seen_at <
  now() - (select coalesce(max(greatest(retention, open_retention)), '0') + interval '1 day' from redrive_catalog.source)`

/**
 * Deletes rows after one day. The broker redelivers unreleased messages sooner. A row whose message was
 * released must not stay, because it would match the next message with the same content.
 */
const DELETE_UNRELEASED = `
delete from redrive_catalog.unreleased where held_until < now() - interval '1 day'`

export const DROP_DAY: string = `
select redrive_catalog.drop_day($1)::integer as dropped`

export const DELETE_SOME: string = `
select redrive_catalog.delete_some($1, $2, $3) as deleted`

/** Counts of expired dead letters, newest day first. */
export const EXPIRED: string = `
select s.name as source, d.day::text as day, (extract(epoch from d.expired_at) * 1000)::bigint::float8 as "expiredAt",
    d.expired as "byStatus"
  from redrive_catalog.source_day d join redrive_catalog.source s on s.id = d.source_id
  where d.expired <> '{}' and ($1::text[] is null or s.name = any($1))
    and ($2::date is null or (d.day, s.name) < ($2::date, $3::text))
  order by d.day desc, s.name desc limit $4`

export const DELETE_GROUPS: string = `
select redrive_catalog.delete_groups($1, $2, $3) as deleted`

const IS_ENDED = `r.state in ('done', 'cancelled', 'plan_expired') and r.queued + r.claimed + r.publishing + r.published = 0`

/**
 * Ended runs after their retention. A run stays while one of its dead letters has no proven outcome: with an unknown one
 * the item prevents a second replay until a user has decided, and the others are still found by a late return. Their
 * number is also part of the next replay id.
 */
export const EXPIRED_RUNS: string = `
select r.id from redrive_catalog.replay_run r
  where ${IS_ENDED} and coalesce(r.ended_at, r.planned_at) <= now() - $1::float8 * interval '1 millisecond'
    and not (r.unknown + r.not_returned + r.expired > 0 and exists (
      select from redrive_catalog.replay_item i join redrive_catalog.dead_letter d on d.id = i.dead_letter_id
        where i.run_id = r.id and (i.state = 'unknown' or i.state in ('not_returned', 'expired') and d.cycle = i.cycle)))
  order by r.planned_at limit 1000`

export const DELETE_ITEMS: string = `
delete from redrive_catalog.replay_item i using redrive_catalog.replay_run r
  where r.id = i.run_id and ${IS_ENDED} and i.run_id = $1 and i.place in (
    select place from redrive_catalog.replay_item where run_id = $1 order by place limit $2)`

/** Deletes a run without items, and adds its counts to those of the source: the sums in metrics never decrease. */
export const DELETE_RUN: string = `
with gone as (
  delete from redrive_catalog.replay_run r where r.id = $1 and ${IS_ENDED}
    and not exists (select from redrive_catalog.replay_item i where i.run_id = r.id) returning r.*
)
update redrive_catalog.source s set past_items = jsonb_build_object(${ITEM_STATES.map(
  (state) => `'${state}', coalesce((s.past_items ->> '${state}')::bigint, 0) + g.${state}`,
).join(', ')})
  from gone g where s.id = g.source_id`

/** Counts what expires soon, by source. */
export const COUNT_EXPIRING: string = `
select redrive_catalog.count_expiring($1)`

export const SOURCE_IDS: string = `
select id from redrive_catalog.source order by id`

/** Deletes earlier cycles and bodies of deleted dead letters. These tables are small: few replays fail again. */
const DELETE_PAST = ['failure_cycle', 'payload_before'].map(
  (table) => `
delete from redrive_catalog.${table} p where not exists (
  select from redrive_catalog.dead_letter d where d.id = p.dead_letter_id)`,
)

/** Deletes selections after one day. They can be confirmed for one hour. */
const DELETE_SELECTIONS = [
  `
delete from redrive_catalog.selection where selected_at < now() - interval '1 day'`,
  `
delete from redrive_catalog.selection_item i where not exists (
  select from redrive_catalog.selection s where s.id = i.selection_id)`,
]

/** Deletes settled set-aside messages after the retention of settled dead letters. Their payloads are deleted with them. */
const DELETE_SET_ASIDE = `
delete from redrive_catalog.set_aside a using redrive_catalog.source s
  where s.id = a.source_id and a.status in ('replayed', 'discarded') and a.settled_at <= now() - s.retention`

/** Deletes the checks of processes that have ended. */
const DELETE_CHECKS = `
delete from redrive_catalog.source_check where checked_at < now() - interval '1 day'`

/** Statements that delete rows which are no longer needed. Each runs in its own transaction. */
/** 30 days: a copied key can be used only for replays of that time. Each replay keeps its key. */
const ROTATE_REPLAY_KEY = `
select redrive_catalog.rotate_replay_key()
  where (select max(created_at) from redrive_catalog.replay_key) < now() - interval '30 days'`

export const CLEANUP: readonly string[] = [
  DELETE_MINUTES,
  DELETE_UNDATED,
  DELETE_UNRELEASED,
  ...DELETE_PAST,
  ...DELETE_SELECTIONS,
  DELETE_SET_ASIDE,
  DELETE_CHECKS,
  ROTATE_REPLAY_KEY,
]
