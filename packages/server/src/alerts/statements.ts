/**
 * 5 min without the alert: it has ended. Alerts are checked every minute, and processes with different thresholds
 * must not end and begin it again and again.
 */
const ENDED_MS = 300_000
/** 1 min: longer than a request may take. The claim of a crashed process expires after it. */
const CLAIM_MS = 60_000
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
  resolved_at = null, ended_at = null`

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

/**
 * Claims alerts that began, and alerts whose delivered begin has ended. Only the process with the claim delivers them.
 * $3: maximum number. $4: whether to claim alerts that began.
 */
export const CLAIM: string = `
update redrive_server.alert set claimed_until = now() + ${CLAIM_MS} * interval '1 ms'
where (target, key) in (
  select target, key from redrive_server.alert
  where target = $1 and coalesce(claimed_until < now(), true) and (
    (ended_at is not null and told_at is not null and resolved_at is null and content is not null)
    or ($4 and ended_at is null and told_at is null and key = any($2)))
  order by ended_at is null, key limit $3 for update skip locked)
returning key, id, content, (extract(epoch from started_at) * 1000)::float8 as "startedAt",
  (extract(epoch from ended_at) * 1000)::float8 as "endedAt"`

/** $2 and $3: ids and contents. The begin of an alert was delivered before its end. */
export const SET_DELIVERED: string = `
update redrive_server.alert a set claimed_until = null, content = sent.content,
  told_at = coalesce(a.told_at, now()), resolved_at = case when a.told_at is not null then now() end
from (
  select held.key, sent.content from redrive_server.alert held
  join unnest($2::uuid[], $3::jsonb[]) as sent (id, content) on held.id = sent.id
  where held.target = $1
  order by held.key for update of held) as sent
where a.target = $1 and a.key = sent.key`

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
