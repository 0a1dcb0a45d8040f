/** The columns that the signed id of a replay is compared with. */
const SIGNED = `i.replay_id, i.dead_letter_id, i.run_id, r.source_id, encode(i.content_sha256, 'hex') as content,
    i.publishes, i.key_id, (select k.secret from redrive_catalog.replay_key k where k.id = i.key_id) as secret`

/** The states of the index of replay ids: a statement with any other condition reads all items. */
const HAS_REPLAY_ID = `state in ('queued', 'claimed', 'publishing', 'published', 'resolved', 'failed_again', 'unknown',
    'expired', 'not_returned')`

/**
 * Selects items of all sources that may have been published. They have the states of the index of replay ids, so no
 * two have the same id: a cancelled item has the id of its next plan. The caller compares the source and the
 * signature, because every producer can write a confirmation.
 */
export const CONFIRMED_ITEMS: string = `
select ${SIGNED}, s.name as source from redrive_catalog.replay_item i
    join redrive_catalog.replay_run r on r.id = i.run_id join redrive_catalog.source s on s.id = r.source_id
  where i.replay_id = any($1::uuid[]) and i.${HAS_REPLAY_ID}`

/** Counts confirmations and returned messages whose replay id does not belong to them. */
export const COUNT_MISMATCHES: string = `
update redrive_catalog.source set mismatches = mismatches + $2, mismatched_at = clock_timestamp() where name = $1`

export const LOCK_DEAD_LETTERS: string = `
select from redrive_catalog.dead_letter where id = any($1::uuid[]) order by id for no key update`

/** Locks items in the order in which a worker locks its published items. Otherwise the two could deadlock. */
export const LOCK_ITEMS: string = `
select from redrive_catalog.replay_item where replay_id = any($1::uuid[]) and ${HAS_REPLAY_ID}
  order by run_id, place for no key update`

export const CONFIRM: string = `
update redrive_catalog.replay_item i set state = $2, proof = $3, settled_at = clock_timestamp(), lease_until = null,
    reason = null
  from redrive_catalog.replay_run r join redrive_catalog.source s on s.id = r.source_id
  where i.replay_id = any($1::uuid[]) and i.state = any($4) and r.id = i.run_id and s.name = $5
  returning i.dead_letter_id as id`

/** Records that the consumers of a source confirm replays. */
export const SOURCE_CONFIRMS: string = `
update redrive_catalog.source set confirmed_at = clock_timestamp() where name = $1 and confirmed_at is null`

/** Published items without a confirmation or a failure in time. */
export const OVERDUE: string = `
select i.dead_letter_id as id, i.replay_id, case when r.change ? 'force' then null else d.key end as key,
    r.options ->> 'proof' = 'returns' as is_unproven, (r.options ->> 'outcomeTimeoutMs')::float8 as timeout_ms
  from redrive_catalog.replay_run r
    join redrive_catalog.source s on s.id = r.source_id
    join redrive_catalog.replay_item i on i.run_id = r.id
    left join redrive_catalog.dead_letter d on d.id = i.dead_letter_id
  where s.name = $1 and r.published > 0 and i.state = 'published'
    and i.published_at < clock_timestamp() - (r.options ->> 'outcomeTimeoutMs')::float8 * interval '1 millisecond'
  order by i.dead_letter_id limit $2`

export const SET_OUTCOME: string = `
update redrive_catalog.replay_item i set state = $2, proof = $3, reason = coalesce(i.reason, $4), settled_at = clock_timestamp()
  where i.replay_id = any($1::uuid[]) and i.state = 'published' returning i.dead_letter_id as id`

/** Items of an ended run that may have been published. Their lease has expired, so no worker updates them. */
export const LEFT_BEHIND: string = `
with items as (
  select i.run_id, i.place from redrive_catalog.replay_item i
    join redrive_catalog.replay_run r on r.id = i.run_id join redrive_catalog.source s on s.id = r.source_id
    where s.name = $1 and r.state in ('cancelled', 'done') and r.publishing > 0 and i.state = 'publishing'
      and i.lease_until < clock_timestamp()
    order by i.run_id, i.place for no key update of i
)
update redrive_catalog.replay_item i set state = 'published', lease_until = null, published_at = clock_timestamp()
  from items where i.run_id = items.run_id and i.place = items.place`

/** Runs that were cancelled while a worker had claimed items, which the worker has returned since. */
export const UNDONE: string = `
select r.id from redrive_catalog.replay_run r join redrive_catalog.source s on s.id = r.source_id
  where s.name = $1 and r.state = 'cancelled' and r.queued + r.claimed > 0`

export const DONE: string = `
update redrive_catalog.replay_run r set state = 'done', ended_at = clock_timestamp()
  from redrive_catalog.source s
  where s.id = r.source_id and s.name = $1 and r.state in ('running', 'paused')
    and r.queued + r.claimed + r.publishing + r.published = 0`

export const EXPIRE_PLANS: string = `
update redrive_catalog.replay_run r set state = 'plan_expired', ended_at = clock_timestamp()
  from redrive_catalog.source s
  where s.id = r.source_id and s.name = $1 and r.state = 'planned' and r.planned_at < clock_timestamp() - interval '1 hour'`

export const DECIDE: string = `
update redrive_catalog.replay_item set state = $2, proof = $3, reason = $4, settled_at = clock_timestamp()
  where dead_letter_id = any($1::uuid[]) and state in ('unknown', 'not_returned')
    -- An earlier replay of the same dead letter may have one of these states, too.
    and cycle = (select d.cycle from redrive_catalog.dead_letter d where d.id = dead_letter_id)
  returning dead_letter_id as id`

/**
 * Items of all sources that may have been published. The caller compares the source and the signature: every
 * producer can write a replay id, and a message in one queue must not change a dead letter of another source.
 * The source is compared and not the origin, because one source can drain the dead letters of several queues.
 */
export const REFAILED_ITEMS: string = `
select ${SIGNED}, i.cycle, i.state, coalesce(r.change ?| array['edit', 'patch'], false) as is_edited,
    r.change is not null as is_changed
  from redrive_catalog.replay_item i join redrive_catalog.replay_run r on r.id = i.run_id
  where i.replay_id = any($1::uuid[]) and i.${HAS_REPLAY_ID}`

/**
 * Items of runs without proof whose message came back without the headers of Redrive, by message id and body. The
 * last failure must be newer than the known one: otherwise it is the original, which the broker delivered again.
 */
export const RETURNED_ITEMS: string = `
select ${SIGNED}, i.cycle, i.state, coalesce(r.change ?| array['edit', 'patch'], false) as is_edited,
    r.change is not null as is_changed, b.message_id
  from unnest($1::text[], $2::text[], $3::bigint[]) as b (message_id, content, last_ms)
    join redrive_catalog.replay_item i on i.content_sha256 = decode(b.content, 'hex')
      and i.state in ('publishing', 'published', 'unknown', 'not_returned')
    join redrive_catalog.replay_run r on r.id = i.run_id
    join redrive_catalog.dead_letter d on d.id = i.dead_letter_id
  where r.source_id = $4 and r.options ->> 'proof' = 'returns' and d.message_id = b.message_id and d.cycle = i.cycle
    and d.last_failed_at < to_timestamp(b.last_ms / 1000.0)`

export const LOCK_REFAILED: string = `
select id, group_id, status, (extract(epoch from first_failed_at) * 1000)::bigint::float8 as first_ms
  from redrive_catalog.dead_letter where id = any($1::uuid[]) order by id for no key update`

export const KEEP_CYCLE: string = `
insert into redrive_catalog.failure_cycle (dead_letter_id, cycle, group_id, replay_id, first_failed_at, last_failed_at,
    attempts, reason, history)
  select d.id, d.cycle, d.group_id, c.replay_id, d.first_failed_at, d.last_failed_at, d.attempts, d.reason, d.history
    from redrive_catalog.dead_letter d join unnest($1::uuid[], $2::uuid[]) as c (id, replay_id) on c.id = d.id
  on conflict (dead_letter_id, cycle) do nothing`

export const KEEP_BODIES: string = `
insert into redrive_catalog.payload_before
  select p.*, d.cycle from redrive_catalog.dead_letter_payload p join redrive_catalog.dead_letter d on d.id = p.dead_letter_id
    where p.dead_letter_id = any($1::uuid[])
  on conflict (dead_letter_id, cycle, part) do nothing`

export const DELETE_BODIES: string = `
delete from redrive_catalog.dead_letter_payload where dead_letter_id = any($1::uuid[])`

export const REOPEN_REFAILED: string = `
update redrive_catalog.dead_letter d set status = 'open', version = d.version + 1, settled_at = clock_timestamp(),
    settled_by = 'consumer', ingested_at = now(), cycle = c.cycle, group_id = c.group_id, attempts = c.attempts,
    last_failed_at = greatest(d.first_failed_at, to_timestamp(c.last_ms / 1000.0)), payload_bytes = c.bytes,
    is_quarantined = c.is_quarantined, is_tombstone = c.is_tombstone, class = c.class, reason = c.reason,
    code = c.code, key = coalesce(c.key, d.key), message = c.message, headers = coalesce(c.headers::jsonb, d.headers),
    history = c.history::jsonb, runs = c.runs
  from unnest($1::uuid[], $2::integer[], $3::uuid[], $4::integer[], $5::bigint[], $6::integer[], $7::boolean[],
      $8::boolean[], $9::text[], $10::text[], $11::text[], $12::text[], $13::text[], $14::text[], $15::text[],
      $16::integer[])
    as c (id, cycle, group_id, attempts, last_ms, bytes, is_quarantined, is_tombstone, class, reason, code, key,
      message, headers, history, runs)
  where d.id = c.id`

/** A dead letter with another body or key no longer equals the earlier replays that were set aside. */
export const UNLINK_SET_ASIDE: string = `
update redrive_catalog.set_aside set replay_of = null where replay_of = any($1::uuid[])`

export const SET_FAILED_AGAIN: string = `
update redrive_catalog.replay_item set state = 'failed_again', settled_at = clock_timestamp(), lease_until = null,
    proof = $2
  where replay_id = any($1::uuid[]) and ${HAS_REPLAY_ID}`

/**
 * Names the dead letter that a set-aside message is a replay of, and its status. Both contain the message, so one of them
 * is enough. Runs after the dead letters are open again.
 */
export const NAME_REPLAYED: string = `
update redrive_catalog.set_aside a set explanation = a.explanation || ' It is a replay of the dead letter ' || d.id
    || case when d.status = 'open' then ', which is open again. Discard one of the two.'
      else ', which has the status "' || d.status || '".' end,
    replay_of = case when not r.is_changed then d.id end
  from unnest($1::uuid[], $2::uuid[], $3::boolean[]) as r (id, dead_letter_id, is_changed)
    join redrive_catalog.dead_letter d on d.id = r.dead_letter_id
  where a.id = r.id`
