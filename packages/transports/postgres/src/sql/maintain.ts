import { interval } from './interval.ts'

/** 30 days, the default retention of the inbox. A control plane that was stopped for longer reads the inbox instead. */
const KEEP_CONFIRMATIONS = `interval '30 days'`

/** Deletes old confirmations, creates and drops partitions, and deletes expired rows. */
export const MAINTAIN: string = `
with old as (
  delete from redrive.replay_confirmation where (queue, replay_id) in (
    select queue, replay_id from redrive.replay_confirmation
      where confirmed_at < pg_catalog.now() - ${KEEP_CONFIRMATIONS} limit 10000)
)
select made as "partitionsCreated", dropped as "partitionsDropped", forgotten::integer as "rowsDeleted"
  from redrive.outbox_maintain(
    ${interval('$1')},
    ${interval('$2')},
    $3::text)`
