import { type Duration, parseDuration, RedriveError } from '@redrive/core'
import type { Pool } from 'pg'
import { rowsOf } from './query.ts'

export interface MaintainOptions {
  /**
   * The queue with this retention. It is stored until a later call changes it; rows of queues without a
   * stored retention are kept. Default: the durations apply to all queues without a stored retention.
   */
  readonly queue?: string
  /** How long delivered events are kept. */
  readonly keepDelivered: Duration
  /** How long dead letters are kept. Operators must triage them within this time. */
  readonly keepDeadLetters: Duration
}

export interface Maintained {
  /** Partitions made for the days to come. */
  readonly made: number
  /** Partitions dropped, with all that was in them and is not needed any more. */
  readonly dropped: number
  /** Rows deleted where no partition could be dropped. */
  readonly forgotten: number
}

/** 30 days, as long as an inbox keeps keys unless told otherwise: a control plane that was away for longer asks there. */
const KEEP_CONFIRMATIONS = `interval '30 days'`

const MAINTAIN = `
with old as (
  delete from redrive.replay_confirmation where (queue, replay_id) in (
    select queue, replay_id from redrive.replay_confirmation
      where confirmed_at < now() - ${KEEP_CONFIRMATIONS} limit 10000)
)
select made, dropped, forgotten::integer from redrive.outbox_maintain(
  least($1::double precision, 1e13) * interval '1 millisecond', least($2::double precision, 1e13) * interval '1 millisecond',
  $3::text)`

/**
 * Makes and drops partitions. Consumers do it every hour for their queue; call it for each queue whose
 * consumers' role is not allowed to.
 */
export async function maintain(pool: Pool, options: MaintainOptions): Promise<Maintained> {
  const keep = [options.keepDelivered, options.keepDeadLetters].map(parseDuration)
  if (keep.includes(undefined)) {
    const message = `keepDelivered and keepDeadLetters: expected durations such as '2d', got ${options.keepDelivered} and ${options.keepDeadLetters}`
    throw new RedriveError('POLICY_INVALID', message)
  }
  const [maintained] = await rowsOf<Maintained>(pool, MAINTAIN, [...keep, options.queue ?? null])
  return maintained as Maintained
}
