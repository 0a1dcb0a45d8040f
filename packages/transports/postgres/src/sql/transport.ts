import { HEX_PAYLOAD } from '../delivery.ts'

/** Settles and hands off rows, then claims others. */
export const TURN: string = `
select id, token, due_at, type, lane, key, content_type, headers, ${HEX_PAYLOAD}, past
from redrive.outbox_turn($1::uuid[], $2::bigint[], $3::jsonb, $4, $5, $6, $7, $8)`

/** Renews leases. Returns the rows with another owner. */
export const RENEW: string = `select redrive.outbox_keep($1::uuid[], $2::bigint[], $3)`

/** Checks for an object of the last migration: an older outbox_turn would misread some arguments. */
export const SCHEMA_STATE: string = `select to_regclass('redrive.outbox_retention') is not null, current_setting('transaction_read_only') = 'on'`
