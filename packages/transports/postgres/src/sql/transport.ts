import { PAYLOAD } from '../payload.ts'
import { interval } from './interval.ts'

/** Settles and hands off rows, then claims others. */
export const TURN: string = `
select id, token, extract(epoch from due_at) * 1000, type, lane, key, content_type, headers, ${PAYLOAD}, past
from redrive.outbox_turn($1::uuid[], $2::bigint[], $3::jsonb, $4, $5, $6, $7, $8)`

/** Renews leases. Returns the rows with another owner. */
export const RENEW: string = `select redrive.outbox_keep($1::uuid[], $2::bigint[], $3)`

/** Stores the retention of a queue, in milliseconds. */
export const RETAIN: string = `
select redrive.outbox_retain($1, ${interval('$2')}, ${interval('$3')})`

/** Checks for an object of a recent migration: an older outbox_turn would misread some arguments. */
export const SCHEMA_STATE: string = `
select pg_catalog.to_regprocedure('redrive.outbox_maintenance_step(interval, interval, text[])') is not null,
  pg_catalog.current_setting('transaction_read_only') = 'on'`

/** Reads the clock of the database. */
export const CLOCK: string = 'select extract(epoch from pg_catalog.clock_timestamp()) * 1000'
