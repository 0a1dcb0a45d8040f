/** Saves a batch; an id in it is unique. A claim stays: the process that has it is still sending. */
export const SAVE: string = `
insert into redrive_store.dead_letter (store, id, saved_at, sink, type, class, job, bytes, content)
  select $1, * from unnest($2::text[], $3::bigint[], $4::text[], $5::text[], $6::text[], $7::text[], $8::int[], $9::text[])
on conflict (store, id) do update set saved_at = excluded.saved_at, sink = excluded.sink, type = excluded.type,
  class = excluded.class, job = excluded.job, bytes = excluded.bytes, content = excluded.content,
  version = nextval('redrive_store.version')`

/** Counts at most as many as allowed. Replaced rows need no room. */
export const COUNT_OTHERS: string = `
select count(*) from (
  select from redrive_store.dead_letter where store = $1 and id <> all($2::text[]) limit $3
) as known`

export const GET: string =
  'select content from redrive_store.dead_letter where store = $1 and id = $2'

/** Returns dead letters after a position, oldest first. A filter that is null matches all. */
export const LIST: string = `
select saved_at, id, content from redrive_store.dead_letter
  where store = $1 and (saved_at, id) > ($2::bigint, $3::text) and saved_at < $4::bigint
    and ($5::text is null or sink = $5) and ($6::text is null or type = $6)
    and ($7::text is null or class = $7) and ($8::text is null or job = $8)
  order by saved_at, id limit $9`

export const DELETE: string =
  'delete from redrive_store.dead_letter where store = $1 and id = $2 returning 1'

export const STATS: string = `
select class, sink, count(*), sum(bytes), min(saved_at) from redrive_store.dead_letter
  where store = $1 group by class, sink`

/** Deletes at most 1,000 rows, so that no statement runs for long. */
export const CLEANUP: string = `
delete from redrive_store.dead_letter where store = $1 and id in (
  select id from redrive_store.dead_letter where store = $1 and saved_at < $2::bigint order by saved_at limit 1000
) and saved_at < $2::bigint returning 1`

const lease = (parameter: string) =>
  `clock_timestamp() + ${parameter}::bigint * interval '1 millisecond'`

/** Claims a dead letter that no other process is sending. */
export const CLAIM: string = `
update redrive_store.dead_letter set claim = $3, claimed_until = ${lease('$4')}
  where store = $1 and id = $2 and (claimed_until is null or claimed_until < clock_timestamp())
  returning content, version`

export const RENEW: string = `
update redrive_store.dead_letter set claimed_until = ${lease('$4')} where store = $1 and id = $2 and claim = $3`

/** Deletes the version that was sent. */
export const FINISH: string = `
delete from redrive_store.dead_letter where store = $1 and id = $2 and claim = $3 and version = $4 returning 1`

export const RELEASE: string = `
update redrive_store.dead_letter set claim = null, claimed_until = null
  where store = $1 and id = $2 and claim = $3`
