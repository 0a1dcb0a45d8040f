import { PAYLOAD } from '../payload.ts'

/** 1 minute: the time that a crashed control plane keeps its dead letters. */
const LEASE = `interval '1 minute'`

/** Leases dead letters, oldest first. */
export const DRAIN: string = `
with dead as materialized (
  select id from redrive.outbox
    where queue = $1 and failed_at is not null and deleted_at is null
      and (lease_until is null or lease_until < pg_catalog.now())
    order by failed_at limit $2
    for no key update skip locked
), token as materialized (select pg_catalog.nextval('redrive.lease_token') as token)
update redrive.outbox o set lease_until = pg_catalog.now() + ${LEASE}, lease_token = token.token
  from dead, token where o.id = dead.id
  returning o.id, o.lease_token, o.failed_at, o.type, o.lane, o.key, o.content_type, o.headers, ${PAYLOAD},
    pg_catalog.jsonb_build_object('attempts', o.attempts, 'lapses', 0, 'generation', o.generation,
      'replayId', o.replay_id, 'replaces', o.replaces, 'closedCycles', pg_catalog.jsonb_array_length(o.failure_history),
      'cycle', o.cycle, 'firstFailedAt', (extract(epoch from o.first_failed_at) * 1000)::bigint),
    o.reason, o.failure_history::text`

/** Matches rows that are unchanged since they were drained: a replay may have changed them already. */
const STILL_LEASED = `from unnest($1::uuid[], $2::bigint[]) as d (id, token)
  where o.id = d.id and o.lease_token = d.token and o.failed_at is not null`

export const RELEASE: string = `
update redrive.outbox o set deleted_at = pg_catalog.now(), lease_until = null
  ${STILL_LEASED}`

/** Makes released dead letters waiting again: a release keeps the row until its partition is dropped. */
export const PUT_BACK: string = `
update redrive.outbox set deleted_at = null, lease_until = null
  where queue = $1 and id = any($2::uuid[]) and failed_at is not null returning id`

export const ABANDON: string = `
update redrive.outbox o set lease_until = null
  ${STILL_LEASED}`

/** Leases confirmations, oldest first, with the same lease as dead letters. */
export const CONFIRMATIONS: string = `
with waiting as materialized (
  select replay_id from redrive.replay_confirmation
    where queue = $1 and (lease_until is null or lease_until < pg_catalog.now())
    order by confirmed_at limit $2
    for no key update skip locked
), token as materialized (select pg_catalog.nextval('redrive.lease_token') as token)
update redrive.replay_confirmation c set lease_until = pg_catalog.now() + ${LEASE}, lease_token = token.token
  from waiting, token where c.queue = $1 and c.replay_id = waiting.replay_id
  returning c.replay_id, c.lease_token, c.outcome, (extract(epoch from c.confirmed_at) * 1000)::bigint`

const LEASED = `where queue = $1 and replay_id = any($2::text[]) and lease_token = any($3::bigint[])`

export const DELETE_CONFIRMATIONS: string = `
delete from redrive.replay_confirmation
  ${LEASED}`

export const RETURN_CONFIRMATIONS: string = `
update redrive.replay_confirmation set lease_until = null
  ${LEASED}`

/** Counts the due events of a queue. */
export const LAG: string = `
select pg_catalog.count(*)::integer as depth from redrive.outbox
  where queue = $1 and status in ('pending', 'in_flight') and due_at <= pg_catalog.now()`

/** Counts the dead letters of a queue. */
export const DEPTH: string = `
select pg_catalog.count(*)::integer as depth from redrive.outbox
  where queue = $1 and failed_at is not null and deleted_at is null`

/**
 * Replays in place: id, key and position in the lane stay, and the closed cycle is added to the history. The
 * body is sent as bytes: as text within JSON, a large body would be in memory four times.
 */
export const REPLAY: string = `
select redrive.outbox_republish($1, $2, $3::jsonb || pg_catalog.jsonb_build_object('payload', pg_catalog.encode($5::bytea, 'base64')), $4)`
