/** 1 min: longer than one delivery may take. The claim of a crashed process expires after it. */
const CLAIM_MS = 60_000

const CLAIMED_UNTIL = `now() + ${CLAIM_MS} * interval '1 ms'`

/** Adds a target. It receives the log from its first entry. */
export const ADD_TARGET: string = `
insert into redrive_server.audit_export (target) values ($1) on conflict do nothing`

/** Claims a target, unless another process exports to it. Returns the last exported entry. */
export const CLAIM_TARGET: string = `
update redrive_server.audit_export set claim = $2, claimed_until = ${CLAIMED_UNTIL}
where target = $1 and coalesce(claimed_until < now(), true)
returning sequence`

/** Stores the last exported entry and renews the claim. Changes nothing if another process has the claim now. */
export const SET_EXPORTED: string = `
update redrive_server.audit_export set sequence = greatest(sequence, $3), claimed_until = ${CLAIMED_UNTIL}
where target = $1 and claim = $2
returning sequence`

export const RELEASE_TARGET: string = `
update redrive_server.audit_export set claim = null, claimed_until = null
where target = $1 and claim = $2`

/** The export cannot have stored a position after the end of the log, so nothing counts as accepted. */
const ACCEPTED = 'case when done.sequence <= head.sequence then done.sequence else 0 end'

/** Counts the entries that a target has not accepted, and the age of the oldest one. */
export const EXPORT_LAG: string = `
select wanted.target, head.sequence - ${ACCEPTED} as entries,
  coalesce((select (extract(epoch from clock_timestamp()) * 1000)::bigint - at_ms
    from redrive_server.audit
    where audit.sequence > ${ACCEPTED} order by audit.sequence limit 1), 0) as age_ms
from redrive_server.audit_head as head, unnest($1::text[]) as wanted (target)
  left join redrive_server.audit_export as done on done.target = wanted.target`
