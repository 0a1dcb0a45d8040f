import { ITEM_COUNTS } from '../run/statements.ts'
import { LATEST } from './flow-control.ts'

/** 5 s: a run stops for this time if its worker crashes. A turn that takes longer renews its lease. */
const LEASE = `interval '5 seconds'`

/**
 * 250 ms: a turn publishes the items that are due until then, each at its time. It is the longest wait of a worker
 * for the rate of one run. A shorter time would cost more statements.
 */
const LOOK_AHEAD = `interval '250 milliseconds'`

/** 500 ms: a delay of a run up to this time is caught up. A longer catch-up would cause a burst. */
const CATCH_UP = `interval '500 milliseconds'`

/** The counts that decide whether a run may publish. */
const COUNTS = `concat_ws(',', r.queued, r.claimed, r.publishing, r.published, r.resolved, r.failed_again, r.unknown, r.expired)`

/** 1 s: a run that waits for outcomes is checked this often, also if none arrive. A check costs several statements. */
const WAITS = `interval '1 second'`

/**
 * Selects a run with items that are due, which no other worker is publishing. This way a later message of a lane
 * cannot overtake an earlier message in flight. The run that was selected longest ago comes first, so all runs
 * get turns. Runs in $2 had their turn already.
 */
export const PICK_RUN: string = `
select r.id, r.source_id, s.name as source, r.options, r.change, ${ITEM_COUNTS},
    r.resumed_at::text, extract(epoch from clock_timestamp() - r.resumed_at)::float8 * 1000 as since_ms
  from redrive_catalog.replay_run r join redrive_catalog.source s on s.id = r.source_id
    left join redrive_catalog.replay_rate q on q.source_id = r.source_id
  where r.state = 'running' and s.name = any($1::text[]) and r.id <> all($2::uuid[])
    and (r.waiting_counts is distinct from ${COUNTS} or r.claimed_at < clock_timestamp() - ${WAITS})
    and coalesce(greatest(r.due_at, q.next_at) <= clock_timestamp() + ${LOOK_AHEAD}, true) and not exists (
      select from redrive_catalog.replay_item i where i.run_id = r.id and i.state in ('claimed', 'publishing')
        and i.lease_until >= clock_timestamp())
  order by r.claimed_at nulls first limit 1 for no key update of r skip locked`

/** Checks again in a separate statement: the one above may have waited for a lock and seen older data. */
export const IS_TAKEN: string = `
select from redrive_catalog.replay_item
  where run_id = $1 and state in ('claimed', 'publishing') and lease_until >= clock_timestamp() limit 1`

/**
 * Counts unconfirmed items that were published since the first of the latest items. Items are published in the
 * order of `place`. A consumer without Redrive confirms nothing, so these items are not failures.
 */
const UNCONFIRMED_SINCE = `
select count(*) from redrive_catalog.replay_item
  where run_id = $1 and state in ('published', 'unknown', 'not_returned') and place >= (select min(place) from latest)
    and place < coalesce((select min(place) from redrive_catalog.replay_item where run_id = $1 and state = 'queued'), 1e9)`

export const RECENT_OUTCOMES: string = `
with latest as (
  select i.place, i.state, i.settled_at, i.published_at from redrive_catalog.replay_item i, redrive_catalog.replay_run r
    where r.id = $1 and i.run_id = r.id and i.state in ('resolved', 'failed_again') and i.settled_at > r.resumed_at
    order by i.settled_at desc limit ${LATEST}
)
select count(*)::integer + case when $2 then (${UNCONFIRMED_SINCE})::integer else 0 end as settled,
    count(*) filter (where state = 'failed_again')::integer as "failedAgain",
    coalesce(max(extract(epoch from settled_at - published_at)), 0)::float8 * 1000 as slowest_ms,
    coalesce(extract(epoch from clock_timestamp() - max(settled_at)), 1e9)::float8 * 1000 as quiet_ms,
    coalesce(extract(epoch from clock_timestamp() - (
      select published_at from redrive_catalog.replay_item where run_id = $1 and state = 'published'
        order by place limit 1)), 0)::float8 * 1000 as unconfirmed_ms
  from latest`

export const RUN_CLAIMED: string = `
update redrive_catalog.replay_run set claimed_at = clock_timestamp(), waiting_counts = null where id = $1`

/** Records that a run has to wait until its counts change. */
export const RUN_WAITS: string = `
update redrive_catalog.replay_run r set waiting_counts = ${COUNTS} where r.id = $1`

/** Claims items with a new token. A worker with an older token can no longer change them. */
export const TAKE_ITEMS: string = `
with lapsed as (
  select place from redrive_catalog.replay_item
    where run_id = $1 and state in ('claimed', 'publishing') and lease_until < clock_timestamp()
    order by place limit $2 for no key update skip locked
), queued as (
  select place from redrive_catalog.replay_item where run_id = $1 and state = 'queued'
    order by place limit $3 for no key update skip locked
), picked as (select place from lapsed union all select place from queued)
update redrive_catalog.replay_item i set lease_token = $4, lease_until = clock_timestamp() + ${LEASE},
    state = 'claimed'
  from picked p where i.run_id = $1 and i.place = p.place
  returning i.place, i.dead_letter_id, i.replay_id, encode(i.content_sha256, 'hex') as content, i.publishes`

/**
 * Locks the rate of a source and counts the items of a run that are due. $2: ms between two items of the run. A run
 * that starts or resumes is due now.
 */
export const DUE_ITEMS: string = `
with due as (
  select greatest(coalesce(r.due_at, clock_timestamp()), q.next_at, clock_timestamp() - ${CATCH_UP}) as first
    from redrive_catalog.replay_run r, redrive_catalog.replay_rate q
    where r.id = $1 and q.source_id = r.source_id for update of q
)
select first::text, floor(extract(epoch from clock_timestamp() + ${LOOK_AHEAD} - first) * 1000 / $2::float8)::integer + 1
      as count,
    extract(epoch from first - clock_timestamp())::float8 * 1000 as wait_ms
  from due`

/** Creates the rate of a source. Its first item is due now. */
export const ADD_RATE: string = `
insert into redrive_catalog.replay_rate (source_id, next_at) values ($1, clock_timestamp())
  on conflict (source_id) do nothing`

/**
 * Reserves the time of $2 items for a run, and the time of as many items in the rate of its source. The rate of a
 * source is the highest rate of its runs. So a slow run takes little of the time of a fast run.
 */
export const RESERVE_RATE: string = `
with run as (
  update redrive_catalog.replay_run set
      due_at = $3::timestamptz + $2::float8 * $4::float8 * interval '1 millisecond'
    where id = $1 returning source_id
)
update redrive_catalog.replay_rate q set
    next_at = greatest(q.next_at, clock_timestamp() - ${CATCH_UP})
      + $2::float8 * interval '1 second' / (
        select max((r.options ->> 'ratePerSecond')::float8) from redrive_catalog.replay_run r
          where r.source_id = q.source_id and r.state = 'running')
  from run where q.source_id = run.source_id`

/**
 * Locks items of a claim in the order of their places. Confirmations lock them in the same order: otherwise the two
 * could deadlock.
 */
const lockClaimed = (condition: string) => `
with own as (
  select place from redrive_catalog.replay_item where run_id = $1 and lease_token = $2 and ${condition}
    order by place for no key update
)`

/** Renews leases that have not expired. Another worker may already be claiming items with an expired lease. */
export const RENEW_LEASE: string = `
${lockClaimed(`state in ('claimed', 'publishing') and lease_until >= clock_timestamp()`)}
update redrive_catalog.replay_item i set lease_until = clock_timestamp() + ${LEASE}
  from own where i.run_id = $1 and i.place = own.place`

/**
 * Records the hash of each body before it is published. A replay that fails again is compared with it. An item keeps
 * its first key, or none if an earlier release published it: when it is published again, its replay id must be the
 * same.
 */
export const BEGIN_PUBLISHING: string = `
${lockClaimed(`place = any($3::integer[]) and state in ('claimed', 'publishing')`)}
update redrive_catalog.replay_item i set state = 'publishing', publishes = i.publishes + 1,
    content_sha256 = decode(b.content, 'hex'), lease_until = clock_timestamp() + ${LEASE},
    key_id = case when i.publishes > 0 then i.key_id
      else coalesce(i.key_id, (select max(id) from redrive_catalog.replay_key)) end
  from own join unnest($3::integer[], $4::text[]) as b (place, content) using (place), redrive_catalog.replay_run r
  where i.run_id = $1 and i.place = own.place and r.id = i.run_id and r.state = 'running'
  returning i.place, i.key_id, (select k.secret from redrive_catalog.replay_key k where k.id = i.key_id) as secret`

export const SET_PUBLISHED: string = `
${lockClaimed(`place = any($3::integer[]) and state = 'publishing'`)}
update redrive_catalog.replay_item i set state = 'published', published_at = clock_timestamp(), lease_until = null,
    reason = null
  from own where i.run_id = $1 and i.place = own.place
  returning i.place`

/** 5 publishes: a message without a confirmation after that is not published again. */
const PUBLISHES_MAX = 5

/** Queues failed items again. The broker may have stored them, so the next publish uses the same replay id. */
export const RETURN_FAILED: string = `
${lockClaimed(`place = any($3::integer[]) and state = 'publishing'`)}
update redrive_catalog.replay_item i set lease_until = null, reason = f.reason,
    state = case when i.publishes < ${PUBLISHES_MAX} then 'queued' else 'published' end,
    published_at = case when i.publishes < ${PUBLISHES_MAX} then null else clock_timestamp() end
  from own join unnest($3::integer[], $4::text[]) as f (place, reason) using (place)
  where i.run_id = $1 and i.place = own.place`

/** Queues items again that were certainly not published. */
export const RETURN_UNSENT: string = `
${lockClaimed(`place = any($3::integer[]) and state in ('claimed', 'publishing')`)}
update redrive_catalog.replay_item i set lease_until = null, state = 'queued',
    publishes = i.publishes - case i.state when 'publishing' then 1 else 0 end
  from own where i.run_id = $1 and i.place = own.place
  returning i.place`

export const TURN_FAILED: string = `
update redrive_catalog.replay_run set failing_turns = failing_turns + 1 where id = $1 returning failing_turns`

export const TURN_WORKED: string = `
update redrive_catalog.replay_run set failing_turns = 0 where id = $1 and failing_turns > 0`

export const SIZES: string = `
select id, payload_bytes from redrive_catalog.dead_letter where id = any($1::uuid[])`

export const NEXT_TOKEN: string = `
select nextval('redrive_catalog.replay_token') as token`
