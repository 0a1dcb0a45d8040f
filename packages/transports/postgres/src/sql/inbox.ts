/** Inserts a handled key. Returns no row if the key exists. */
export const ENTER: string = `
insert into redrive.event_handled (consumer, key, fingerprint) values ($1, $2, $3)
on conflict do nothing
returning key`

/**
 * Limits the statements of the transaction to $3 ms, unless a shorter limit is set, and returns the keys that exist. At least
 * one row. The server would otherwise continue a statement whose connection was closed, with its locks.
 */
export const BEGIN_BATCH: string = `
with own as materialized (
  select set_config('statement_timeout', least($3::bigint, coalesce(nullif(
    (extract(epoch from current_setting('statement_timeout')::interval) * 1000)::bigint, 0), $3::bigint))::text, true))
select handled.key from own
left join redrive.event_handled handled on handled.consumer = $1 and handled.key = any($2::text[])`

/** Inserts handled keys, in the order of the keys: two batches with equal keys then cannot deadlock. Returns the new ones. */
export const ENTER_ALL: string = `
insert into redrive.event_handled (consumer, key, fingerprint)
select $1, key, fingerprint from unnest($2::text[], $3::text[]) as entry (key, fingerprint)
order by key collate "C"
on conflict do nothing
returning key`

export const STORED_FINGERPRINT: string = `
select fingerprint from redrive.event_handled where consumer = $1 and key = $2`

export const HANDLED: string = `
select key from redrive.event_handled where consumer = $1 and key = any($2::text[])`

export const DELETE_OLD_KEYS: string = `
select redrive.inbox_forget($1::text, $2::double precision * interval '1 millisecond') as deleted`

/**
 * Begins a transaction that the server ends after this time without a statement. The attempt has ended by then. In one
 * request, because each message needs it.
 */
export const beginFor = (idleMs: number): string =>
  `begin; set local idle_in_transaction_session_timeout = ${Math.ceil(idleMs)}`
