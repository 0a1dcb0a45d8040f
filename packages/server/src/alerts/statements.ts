/**
 * 5 min without the alert: it has ended. Alerts are checked every minute, and processes with different thresholds
 * must not end and begin it again and again.
 */
const ENDED_MS = 300_000
/** 2 min: longer than a delivery, of which an e-mail takes up to 1 min. The claim of a crashed process expires after it. */
const CLAIM_MS = 120_000
/** 50 s: the check in the next minute sends a failed message again. */
const RETRY_MS = 50_000
/** 4 doublings, 13 min: a channel that accepts messages and then times out gets few copies. */
const DOUBLINGS_MAX = 4
/** 1 h: the time of the limit of messages. */
const HOUR = `interval '1 hour'`

// Each statement locks its rows in the order of their keys, so that two processes cannot cause a deadlock.

export const RECORD_ACTIVE: string = `
insert into redrive_server.alert as held (target, key)
select $1, key from unnest($2::text[]) as key order by key
on conflict (target, key) do update set held_at = now(),
  id = case when held.ended_at is null then held.id else gen_random_uuid() end,
  told_at = case when held.ended_at is null then held.told_at end,
  started_at = case when held.ended_at is null then held.started_at else now() end,
  resolved_at = null, ended_at = null,
  failures = case when held.ended_at is null then held.failures else 0 end,
  rejections = case when held.ended_at is null then held.rejections else 0 end`

/**
 * Ends the alerts that are not active any more. An alert that was active before all servers stopped, and still
 * is, does not end: it was recorded before.
 */
export const RECORD_ENDED: string = `
update redrive_server.alert set ended_at = now()
where (target, key) in (
  select target, key from redrive_server.alert
  where target = $1 and ended_at is null and held_at < now() - ${ENDED_MS} * interval '1 ms'
  order by key for update)`

/** Deletes alerts that ended a day ago, also when their channel did not accept the end. */
export const DELETE_OLD: string = `
delete from redrive_server.alert
where (target, key) in (
  select target, key from redrive_server.alert
  where target = $1 and ended_at < now() - interval '1 day'
  order by key for update)`

/** Deletes the alerts of channels that no process has had for a day. $1: the channels. */
export const DELETE_REMOVED: string = `
delete from redrive_server.alert
where (target, key) in (
  select target, key from redrive_server.alert
  where target <> all($1) and held_at < now() - interval '1 day'
  order by target, key for update skip locked)`

export const DELETE_REMOVED_LIMITS: string = `
delete from redrive_server.alert_channel
where target <> all($1) and hour_started_at < now() - interval '1 day'`

/**
 * Claims alerts that began, and alerts whose delivered begin has ended. Only the process with the claim delivers them.
 * $2: keys of alerts that may begin, in the order of their urgency. $3: maximum number.
 */
export const CLAIM: string = `
update redrive_server.alert set claimed_until = now() + ${CLAIM_MS} * interval '1 ms'
where (target, key) in (
  select held.target, held.key from redrive_server.alert held
  left join unnest($2::text[]) with ordinality as begin (key, place) on begin.key = held.key
  where held.target = $1 and coalesce(held.claimed_until < now(), true) and (
    (held.ended_at is not null and held.told_at is not null and held.resolved_at is null and held.content is not null)
    or (held.ended_at is null and held.told_at is null and begin.place is not null))
  order by held.ended_at is null, begin.place, held.key limit $3 for update of held skip locked)
returning key, id, content, (extract(epoch from started_at) * 1000)::float8 as "startedAt",
  (extract(epoch from ended_at) * 1000)::float8 as "endedAt"`

/** $2 to $4: ids, whether the end was delivered, and contents. */
export const SET_DELIVERED: string = `
update redrive_server.alert a set claimed_until = null, failures = 0, rejections = 0, content = sent.content,
  told_at = coalesce(a.told_at, now()), resolved_at = case when sent.is_end then now() else a.resolved_at end
from (
  select held.key, sent.is_end, sent.content from redrive_server.alert held
  join unnest($2::uuid[], $3::boolean[], $4::jsonb[]) as sent (id, is_end, content) on held.id = sent.id
  where held.target = $1
  order by held.key for update of held) as sent
where a.target = $1 and a.key = sent.key`

/** Plans the next attempt. $2: ids. $3: whether the channel may have accepted them; each attempt then waits longer. */
export const RECORD_FAILED: string = `
update redrive_server.alert set failures = failures + 1,
  claimed_until = now() + case when $3 then power(2, least(failures, ${DOUBLINGS_MAX})) else 1 end
    * ${RETRY_MS} * interval '1 ms'
where (target, key) in (
  select target, key from redrive_server.alert
  where target = $1 and id = any($2)
  order by key for update)`

/**
 * Counts a rejection of one alert, and gives it up after the last one. Without a content, the end of a given up begin
 * is not delivered. $2: id. $3: whether the end was rejected. $4: maximum number of rejections.
 */
export const RECORD_REJECTED: string = `
update redrive_server.alert set rejections = rejections + 1,
  claimed_until = now() + ${RETRY_MS} * interval '1 ms',
  told_at = case when rejections + 1 >= $4 then coalesce(told_at, now()) else told_at end,
  resolved_at = case when rejections + 1 >= $4 and $3 then now() else resolved_at end
where target = $1 and id = $2
returning rejections >= $4 as "isGivenUp"`

export const RETURN_CLAIM: string = `
update redrive_server.alert set claimed_until = null
where (target, key) in (
  select target, key from redrive_server.alert
  where target = $1 and id = any($2)
  order by key for update)`

/** Counts a message with new alerts. Returns no row above the limit of an hour. */
export const TAKE_MESSAGE: string = `
insert into redrive_server.alert_channel as channel (target, hour_started_at, messages) values ($1, now(), 1)
on conflict (target) do update set
  hour_started_at = case when channel.hour_started_at < now() - ${HOUR} then now() else channel.hour_started_at end,
  messages = case when channel.hour_started_at < now() - ${HOUR} then 1 else channel.messages + 1 end
where channel.hour_started_at < now() - ${HOUR} or channel.messages < $2
returning messages`

/** A message that the channel did not accept does not count. */
export const RETURN_MESSAGE: string = `
update redrive_server.alert_channel set messages = messages - 1 where target = $1 and messages > 0`
