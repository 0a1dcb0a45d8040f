/** Returns the id of the source, or null if it does not exist. */
export const STOP_INGEST: string = `
select redrive_catalog.stop_ingest($1, $2) as id`

/** Open dead letters after an id. The order of ids makes each call continue where the last one ended. */
export const OPEN_AFTER: string = `
select id, payload_bytes as bytes from redrive_catalog.dead_letter
  where source_id = $1 and status = 'open' and id > $2::uuid order by id limit $3`

export const DELETE_PUT_BACK: string = `
select redrive_catalog.delete_put_back($1::uuid[]) as deleted`

/** Counts the messages of a source that are set aside and not settled. */
export const COUNT_SET_ASIDE: string = `
select count(*)::integer as count from redrive_catalog.set_aside
  where source_id = $1 and status in ('open', 'requested', 'replaying')`

/** Counts the dead letters of a source that are not settled, by status. */
export const COUNT_UNSETTLED: string = `
select status, count(*)::integer as count from redrive_catalog.dead_letter
  where source_id = $1 and status in ('open', 'replaying', 'unknown') group by status`
