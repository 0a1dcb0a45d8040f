import { type Duration, parseDuration, RedriveError } from '@redrive/core'
import type { Pool } from 'pg'
import { rowsOf } from './query.ts'

export interface MaintainOptions {
  /** Delivered events older than that go. */
  readonly keepDelivered: Duration
  /** Dead letters older than that go; whoever is to triage them must have done so by then. */
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
  least($1::double precision, 1e13) * interval '1 millisecond', least($2::double precision, 1e13) * interval '1 millisecond')`

/** Makes and drops partitions. Consumers do it every hour; call it where their role may not. */
export async function maintain(pool: Pool, options: MaintainOptions): Promise<Maintained> {
  const keep = [options.keepDelivered, options.keepDeadLetters].map(parseDuration)
  if (keep.includes(undefined)) {
    const message = `keepDelivered and keepDeadLetters: expected durations such as '2d', got ${options.keepDelivered} and ${options.keepDeadLetters}`
    throw new RedriveError('POLICY_INVALID', message)
  }
  const [maintained] = await rowsOf<Maintained>(pool, MAINTAIN, keep)
  return maintained as Maintained
}
