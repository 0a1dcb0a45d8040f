/** Returns the id of the source, or null if it does not exist. */
export const STOP_INGEST: string = `
select redrive_catalog.stop_ingest($1, $2) as id`

/** Open dead letters after an id. The order of ids makes each call continue where the last one ended. */
export const OPEN_AFTER: string = `
select id, payload_bytes as bytes from redrive_catalog.dead_letter
  where source_id = $1 and status = 'open' and id > $2::uuid order by id limit $3`

/** Deletes dead letters, and the set-aside replays of them with the same content: the broker has the message once. */
export const DELETE_PUT_BACK: string = `
with copies as (
  delete from redrive_catalog.set_aside where replay_of = any($1::uuid[]) and status = 'open' returning 1
)
select redrive_catalog.delete_put_back($1::uuid[]) + (select count(*)::integer from copies) as deleted`

/** Counts the dead letters of a source that are not settled, by status. */
export const COUNT_UNSETTLED: string = `
select status, count(*)::integer as count from redrive_catalog.dead_letter
  where source_id = $1 and status in ('open', 'replaying', 'unknown') group by status`

/** Open set-aside messages after an id. */
export const OPEN_SET_ASIDE_AFTER: string = `
select id, kept_bytes::float8 as bytes from redrive_catalog.set_aside
  where source_id = $1 and status = 'open' and id > $2::uuid order by id limit $3`

/** Locks in the order of ids, as the ingest does. The payloads are deleted with their rows. */
export const DELETE_PUT_BACK_SET_ASIDE: string = `
with chosen as (
  select id from redrive_catalog.set_aside where id = any($1::uuid[]) and status = 'open' order by id for update
), deleted as (
  delete from redrive_catalog.set_aside a using chosen c where a.id = c.id returning a.id
)
select count(*)::integer as deleted from deleted`

/** Counts the set-aside messages of a source that are not settled, by status. */
export const COUNT_UNSETTLED_SET_ASIDE: string = `
select status, count(*)::integer as count from redrive_catalog.set_aside
  where source_id = $1 and status in ('open', 'requested', 'replaying') group by status`
