import { momentSql, msSql } from '../../read/sql.ts'
import { ITEM_STATES } from './states.ts'

/** The number of items in each state. */
export const ITEM_COUNTS: string = ITEM_STATES.map((state) => `r.${state}`).join(', ')

const RUN_COLUMNS = `
    r.id, s.name as source, r.state, r.hash, r.note, r.asked, r.options, r.change is not null as is_changed,
    r.planned_by, r.approved_by, r.resumed_by, r.paused_because, ${msSql('r.planned_at')} as planned_ms,
    ${msSql('r.approved_at')} as approved_ms, ${msSql('r.paused_at')} as paused_ms, ${msSql('r.ended_at')} as ended_ms,
    ${ITEM_COUNTS}`

const FROM_RUNS = `from redrive_catalog.replay_run r join redrive_catalog.source s on s.id = r.source_id`

export const RUN: string = `
select ${RUN_COLUMNS}
  ${FROM_RUNS}
  where r.id = $1`

export const RUNS: string = `
select ${RUN_COLUMNS}
  ${FROM_RUNS}
  where ($1::text is null or s.name = $1) and r.state = any($2)
    and ($6::text[] is null or s.name = any($6))
    and ($3::float8 is null or (r.planned_at, r.id) < (${momentSql('$3')}, $4::uuid))
  order by r.planned_at desc, r.id desc limit $5`

export const CHANGE_OF_RUN: string = `
select change from redrive_catalog.replay_run where id = $1`

/** Groups skipped items by the word before the colon. The text after it is about one item only. */
export const SKIPPED: string = `
select split_part(reason, ':', 1) as reason, count(*)::integer as count
  from redrive_catalog.replay_item where run_id = $1 and state = 'skipped' group by 1 order by 1`

const ITEMS = `
select i.run_id, i.place, i.dead_letter_id, i.replay_id, i.cycle, i.state, i.reason, i.other_run, i.publishes, i.proof,
    ${msSql('i.published_at')} as published_ms, ${msSql('i.settled_at')} as settled_ms, d.key, d.message,
    coalesce(g.root_id, d.group_id) as group_id
  from redrive_catalog.replay_item i
    left join redrive_catalog.dead_letter d on d.id = i.dead_letter_id
    left join redrive_catalog.failure_group g on g.id = d.group_id`

export const ITEMS_OF_DEAD_LETTER: string = `${ITEMS}
  where i.dead_letter_id = $1 and i.state = any($2)
  order by i.cycle desc, i.settled_at desc limit $3`

export const ITEMS_OF_RUN: string = `${ITEMS}
  where i.run_id = $1 and i.state = any($2) and i.place > $4
  order by i.place limit $3`

/** One hour: the dead letters may have changed since an older plan. */
const PLAN_LIFE = `interval '1 hour'`

export const LOCK_RUN: string = `
select state, hash, planned_by, planned_at < clock_timestamp() - ${PLAN_LIFE} as is_stale,
    (extract(epoch from clock_timestamp() - paused_at) * 1000)::float8 as paused_for_ms
  from redrive_catalog.replay_run where id = $1 for update`

/**
 * Locks the dead letters in the order of their ids, as everywhere. If two approvals contain the same dead letter,
 * the second waits here and then sees that it is already replaying.
 */
export const LOCK_PLANNED: string = `
select d.id from redrive_catalog.dead_letter d
  where d.id = any(array(select dead_letter_id from redrive_catalog.replay_item where run_id = $1 and state = 'planned'))
  order by d.id for no key update`

/**
 * Marks the dead letters as replaying. It is a separate statement, so it sees the data after the wait for the
 * lock. The join uses an index even without table statistics.
 */
export const TAKE_PLANNED: string = `
update redrive_catalog.dead_letter d set status = 'replaying', version = d.version + 1,
    settled_at = clock_timestamp(), settled_by = $2
  from redrive_catalog.replay_item i
  where i.run_id = $1 and i.state = 'planned' and d.id = i.dead_letter_id and d.status = 'open' and d.version = i.version
  returning i.place, d.group_id`

export const QUEUE_TAKEN: string = `
update redrive_catalog.replay_item i set
    state = case when t.place is null then 'skipped' else 'queued' end,
    other_run = o.run_id,
    reason = case when t.place is not null then null when o.run_id is null then 'changed' else 'in_run' end
  from redrive_catalog.replay_item p
    left join unnest($2::integer[]) as t (place) on t.place = p.place
    left join redrive_catalog.replay_item o on t.place is null and o.dead_letter_id = p.dead_letter_id
      and o.state in ('queued', 'claimed', 'publishing', 'published', 'unknown')
  where p.run_id = $1 and p.state = 'planned' and i.run_id = p.run_id and i.place = p.place`

export const START_RUN: string = `
update redrive_catalog.replay_run set approved_by = $2, approved_at = clock_timestamp(), resumed_at = clock_timestamp(),
    state = case when queued > 0 then 'running' else 'done' end,
    ended_at = case when queued > 0 then null else clock_timestamp() end
  where id = $1`

export const RENEW_APPROVAL: string = `
update redrive_catalog.replay_run set approved_by = $2, approved_at = clock_timestamp() where id = $1`

/** Pauses a run. Claimed items are not published any more, because a publish requires a running run. */
export const PAUSE_RUN: string = `
update redrive_catalog.replay_run set state = 'paused', paused_at = clock_timestamp(), paused_because = $2
  where id = $1 and state = 'running' and ($3::timestamptz is null or resumed_at = $3) returning id`

export const RESUME_RUN: string = `
update redrive_catalog.replay_run set state = 'running', resumed_at = clock_timestamp(), resumed_by = $2,
    paused_at = null, paused_because = null, failing_turns = 0, due_at = null,
    waiting_counts = null
  where id = $1`

/**
 * Makes the source of a run due now. A slower run may have reserved a long time, and the new highest rate must not
 * wait for it.
 */
export const RESET_RATE: string = `
update redrive_catalog.replay_rate q set next_at = least(q.next_at, clock_timestamp())
  from redrive_catalog.replay_run r where r.id = $1 and q.source_id = r.source_id`

/** Locks the dead letters first, in the order of ids. All writers lock dead letters, then items, then the run. */
export const LOCK_QUEUED: string = `
select d.id from redrive_catalog.dead_letter d
  where d.id = any(array(select dead_letter_id from redrive_catalog.replay_item
    where run_id = $1 and state in ('queued', 'claimed')))
  order by d.id for no key update`

/** Cancels queued items. An item that was sent before may be published, so it waits for its outcome instead. */
export const CANCEL_QUEUED: string = `
update redrive_catalog.replay_item set lease_until = null,
    state = case when publishes = 0 then 'cancelled' else 'published' end,
    reason = case when publishes = 0 then $2 else reason end,
    settled_at = case when publishes = 0 then clock_timestamp() end,
    published_at = case when publishes > 0 then coalesce(published_at, clock_timestamp()) end
  where run_id = $1 and state in ('queued', 'claimed') and dead_letter_id = any($3::uuid[])
  returning dead_letter_id as id, state`

export const CANCEL_PLANNED: string = `
update redrive_catalog.replay_item set state = 'cancelled', reason = $2, settled_at = clock_timestamp()
  where run_id = $1 and state = 'planned'`

export const CANCEL_RUN: string = `
update redrive_catalog.replay_run set state = 'cancelled', ended_at = clock_timestamp()
  where id = $1 and state in ('planned', 'running', 'paused') returning id`

export const READ_EPOCH: string = `
select identity, redrive_catalog.identity() as now, beat::text, frozen_because from redrive_catalog.replay_epoch`

export const LOCK_EPOCH: string = `${READ_EPOCH} for update`

export const GROW_BEAT: string = `
update redrive_catalog.replay_epoch set beat = beat + 1 returning beat::text`

export const FREEZE: string = `
update redrive_catalog.replay_epoch set frozen_at = clock_timestamp(), frozen_because = $1 where frozen_because is null`

/**
 * The new counter after an acknowledgement: the current time in ms. Each process increments the counter at most
 * once per second. So the time is larger than any earlier counter, also after an earlier acknowledged restore.
 */
const NEW_BEAT = 'greatest(beat + 1, (extract(epoch from clock_timestamp()) * 1000)::bigint)'

export const ACKNOWLEDGE: string = `
update redrive_catalog.replay_epoch set identity = redrive_catalog.identity(), beat = ${NEW_BEAT}, frozen_at = null,
    frozen_because = null, acknowledged_by = $1, acknowledged_at = clock_timestamp()`
