/** 5 min without the alert: it has ended. Alerts are checked every minute, and a restart takes some time. */
const ENDED_MS = 300_000
/** 1 min: longer than a request may take. The claim of a crashed process expires after it. */
const CLAIM_MS = 60_000
/** 100 alerts in one request. More usually have one cause. The rest follows in the next request. */
const POST_MAX = 100

const HAS_ENDED = `held.held_at < now() - ${ENDED_MS} * interval '1 ms'`

/** Ordered by key, so that two processes cannot cause a deadlock. */
export const RECORD_ACTIVE: string = `
insert into redrive_server.alert as held (target, key)
select $1, key from unnest($2::text[]) as key order by key
on conflict (target, key) do update set held_at = now(),
  id = case when ${HAS_ENDED} then gen_random_uuid() else held.id end,
  told_at = case when ${HAS_ENDED} then null else held.told_at end`

/** Deletes alerts that ended a day ago. */
export const DELETE_OLD: string = `
delete from redrive_server.alert where target = $1 and held_at < now() - interval '1 day'`

/** Claims undelivered alerts. Only the process with the claim delivers them. */
export const CLAIM: string = `
update redrive_server.alert set claimed_until = now() + ${CLAIM_MS} * interval '1 ms'
where (target, key) in (
  select target, key from redrive_server.alert
  where target = $1 and key = any($2) and told_at is null and coalesce(claimed_until < now(), true)
  order by key limit ${POST_MAX} for update skip locked)
returning key, id`

export const SET_DELIVERED: string = `
update redrive_server.alert set told_at = now(), claimed_until = null
where target = $1 and id = any($2)`

export const RETURN_CLAIM: string = `
update redrive_server.alert set claimed_until = null
where target = $1 and id = any($2)`
