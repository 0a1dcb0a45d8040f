import { momentSql, msSql } from '../read/sql.ts'

/**
 * Adds rows and returns their ids. A row that was replayed before is open again: the message came back unchanged. Other
 * existing rows are not returned and do not change.
 */
export const INSERT_SET_ASIDE: string = `
insert into redrive_catalog.set_aside as a (id, source_id, reason, explanation, message_id, key, type, origin,
    content_type, payload_bytes, kept_bytes, sha256)
  select r.id, $1, r.reason, r.explanation, r.message_id, r.key, r.type, r.origin, r.content_type, r.bytes, r.bytes,
      r.sha256
    from unnest($2::uuid[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[],
        $10::bigint[], $11::bytea[])
      as r (id, reason, explanation, message_id, key, type, origin, content_type, bytes, sha256)
    order by r.id
  on conflict (id) do update set status = 'open', settled_at = null, requested_by = null where a.status = 'replayed'
  returning id, xmax = 0 as is_new`

const SET_ASIDE_COLUMNS = `a.id, s.name as source, ${msSql('a.set_aside_at')} as at, a.reason, a.explanation, a.status,
    a.message_id, a.key, a.type, a.origin, a.content_type, a.payload_bytes::float8 as payload_bytes,
    a.kept_bytes::float8 as kept_bytes, a.is_complete, encode(a.sha256, 'hex') as sha256, a.requested_by, a.without_headers,
    ${msSql('a.settled_at')} as settled_at, a.replay_error`

const FROM_SET_ASIDE = `from redrive_catalog.set_aside a join redrive_catalog.source s on s.id = a.source_id`

/** Lists by source, one source and status after the other; each is one short index scan. */
export const LIST_SET_ASIDE: string = `
select ${SET_ASIDE_COLUMNS}
  from redrive_catalog.source s
  cross join unnest($2::text[]) as wanted (status)
  cross join lateral (
    select * from redrive_catalog.set_aside r
      where r.source_id = s.id and r.status = wanted.status
        and ($3::float8 is null or (r.set_aside_at, r.id) < (${momentSql('$3::float8')}, $4::uuid))
      order by r.set_aside_at desc, r.id desc limit $5) a
  where $1::text[] is null or s.name = any($1)
  order by a.set_aside_at desc, a.id desc limit $5`

export const GET_SET_ASIDE: string = `
select ${SET_ASIDE_COLUMNS} ${FROM_SET_ASIDE} where a.id = $1::uuid`

export const SET_ASIDE_PARTS: string = `
select part, bytes, wire, key_id, wrapped_key
  from redrive_catalog.set_aside_payload
  where set_aside_id = $1::uuid and part >= $2 and part < $3 order by part`

/** One part of a body. It never changes. */
export const SET_ASIDE_PART: string = `
select p.part, p.bytes, p.wire, p.key_id, p.wrapped_key, '' as version,
    case p.part when 0 then (select count(*) from redrive_catalog.set_aside_payload c where c.set_aside_id = p.set_aside_id)::integer end as parts
  from redrive_catalog.set_aside_payload p where p.set_aside_id = $1::uuid and p.part = $2`

/** Locks in the order of ids, as the ingest does. */
export const LOCK_SET_ASIDE: string = `
select a.id, a.requested_by, a.without_headers from redrive_catalog.set_aside a
  where a.id = any($1::uuid[]) and a.status = any($2::text[]) order by a.id for update`

export const CHANGE_SET_ASIDE: string = `
update redrive_catalog.set_aside set status = $2, requested_by = coalesce($3, requested_by), replay_error = null,
    without_headers = coalesce($4::text[], without_headers), settled_at = case when $2 = 'discarded' then clock_timestamp() end
  where id = any($1::uuid[])`

export const APPROVED_SET_ASIDE: string = `
select a.id ${FROM_SET_ASIDE} where s.name = $1 and a.status = 'replaying' limit 1`

/** Locks one message while it is published. Another process skips it. */
export const CLAIM_SET_ASIDE: string = `
select a.id, a.kept_bytes::float8 as bytes, a.without_headers ${FROM_SET_ASIDE}
  where s.name = any($1::text[]) and a.status = 'replaying'
  order by a.set_aside_at, a.id limit 1 for update of a skip locked`

export const END_SET_ASIDE_REPLAY: string = `
update redrive_catalog.set_aside set status = $2, replay_error = $3,
    settled_at = case when $2 = 'replayed' then clock_timestamp() end
  where id = $1`
