/** Columns of an entry, for `EntryRow`. */
const ENTRY = `sequence, at_ms, person, via, operation, outcome, source, subject, facts,
  encode(previous, 'hex') as previous, encode(hash, 'hex') as hash`

/** Returns the statement for a page of entries, newest first. Each condition is a part of the `where` clause. */
export const searchAudit = (conditions: readonly string[]): string => `
select ${ENTRY}
from redrive_server.audit
where ${['sequence < $1', ...conditions].join(' and ')}
order by sequence desc limit $2`

/** Reads the chain in its order, page by page. */
export const NEXT_ENTRIES: string = `
select ${ENTRY}
from redrive_server.audit
where sequence > $1
order by sequence limit $2`

export const VALUE_KEY: string = `
select key from redrive_server.audit_key`

export const HASH_OF_ENTRY: string = `
select encode(hash, 'hex') as hash from redrive_server.audit where sequence = $1`

const NOW_MS = '(extract(epoch from clock_timestamp()) * 1000)::bigint'

/** Counts the original messages that a person has seen in the last hour, at most $2, up to entry $4. The conditions are those of an index. */
export const COUNT_UNMASKED: string = `
select count(*)::int as count, coalesce(max(age_ms), 0) as oldest_ms
from (
  select ${NOW_MS} - at_ms as age_ms from redrive_server.audit
  where person = $1 and outcome = 'viewed' and operation in ('getPayload', 'getSetAsidePayload')
    and sequence <= $4
  order by sequence desc limit $2
) as latest
where age_ms < $3`

export const HEAD: string = `
select sequence, encode(hash, 'hex') as hash, ${NOW_MS} as at from redrive_server.audit_head`

/** Locks the head and reads the clock after that, so that timestamps increase with the sequence. */
export const LOCK_HEAD: string = `
select sequence, encode(hash, 'hex') as hash, ${NOW_MS} as now
from redrive_server.audit_head
for update`

export const APPEND: string = `
with added as (
  insert into redrive_server.audit
    (sequence, at_ms, person, via, operation, outcome, source, subject, facts, previous, hash)
  select sequence, $1, person, via, operation, outcome, source, subject, facts,
    decode(previous, 'hex'), decode(hash, 'hex')
  from unnest($2::bigint[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[],
      $10::text[], $11::text[])
    as entry (sequence, person, via, operation, outcome, source, subject, facts, previous, hash)
)
update redrive_server.audit_head set sequence = $12, hash = decode($13, 'hex')`
