/** 1 min: after it, the process that started the request has crashed, or finds the work already done. */
const TAKEN_OVER = `interval '1 minute'`
/** 24 h: clients do not repeat a request later. */
const KEPT = `interval '24 hours'`

export const TAKE: string = `
insert into redrive_server.idempotency as i (caller, key, operation, request_hash, work)
  values ($1, $2, $3, $4, $5)
  on conflict (caller, key) do update set operation = excluded.operation, request_hash = excluded.request_hash,
      work = excluded.work, taken_at = clock_timestamp(), status = null, answer = null, etag = null
    where i.taken_at < clock_timestamp() - ${KEPT}
      or ($6::boolean and i.status is null and i.taken_at < clock_timestamp() - ${TAKEN_OVER}
        and i.operation = excluded.operation and i.request_hash = excluded.request_hash)
  returning work`

export const LOOK: string = `
select operation, request_hash, status, answer, etag,
    taken_at < clock_timestamp() - ${TAKEN_OVER} as is_broken_off
  from redrive_server.idempotency where caller = $1 and key = $2`

export const KEEP: string = `
update redrive_server.idempotency set status = $4, answer = $5, etag = $6
  where caller = $1 and key = $2 and work = $3`

export const LEAVE: string = `
delete from redrive_server.idempotency where caller = $1 and key = $2 and work = $3 and status is null`

/** 1,000 rows per statement: it is fast and does not block other requests. */
export const SWEEP_BATCH = 1_000

export const SWEEP: string = `
delete from redrive_server.idempotency where (caller, key) in (
  select caller, key from redrive_server.idempotency
    where taken_at < clock_timestamp() - ${KEPT} order by taken_at limit ${SWEEP_BATCH})
  returning 1`
