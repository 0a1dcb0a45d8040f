/** Inserts a handled key. Returns no row if the key exists. */
export const ENTER: string = `
insert into redrive.event_handled (consumer, key, fingerprint) values ($1, $2, $3)
on conflict do nothing
returning key`

export const STORED_FINGERPRINT: string = `
select fingerprint from redrive.event_handled where consumer = $1 and key = $2`

export const HANDLED: string = `
select key from redrive.event_handled where consumer = $1 and key = any($2::text[])`

export const DELETE_OLD_KEYS: string = `
select redrive.inbox_forget($1::text, $2::double precision * interval '1 millisecond') as deleted`

/** Sets the idle timeout after which the server ends the transaction. The attempt has ended by then. */
export const SET_IDLE_TIMEOUT: string = `
select pg_catalog.set_config('idle_in_transaction_session_timeout', $1, true)`
