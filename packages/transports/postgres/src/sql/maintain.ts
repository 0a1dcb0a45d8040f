import { intervalOrNull } from './interval.ts'

/** 30 days, the default retention of the inbox. A control plane that was stopped for longer reads the inbox instead. */
const KEEP_CONFIRMATIONS = `interval '30 days'`

/** Deletes old confirmations. */
export const DELETE_CONFIRMATIONS_OF_OLD: string = `
delete from redrive.replay_confirmation where (queue, replay_id) in (
  select queue, replay_id from redrive.replay_confirmation
    where confirmed_at < pg_catalog.now() - ${KEEP_CONFIRMATIONS} limit 10000)`

/** A step may read a day of millions of rows. */
export const NO_TIMEOUT: string = `select pg_catalog.set_config('statement_timeout', '0', true)`

/** Does the next step of the maintenance. */
export const MAINTENANCE_STEP: string = `
select done, subject, amount from redrive.outbox_maintenance_step(${intervalOrNull('$1')}, ${intervalOrNull('$2')}, $3)`

/** Counts the days from today on that have a partition without a gap. */
export const DAYS_AHEAD: string = `
select coalesce(min(ahead) filter (where pg_catalog.to_regclass('redrive.outbox_' ||
    pg_catalog.to_char((pg_catalog.now() at time zone 'UTC')::date + ahead, 'YYYYMMDD')) is null), 8) as days
  from pg_catalog.generate_series(1, 7) as ahead`
