import { type Duration, parseDuration, RedriveError } from '@redrive/core'
import type { Pool } from 'pg'
import { rowsOf } from './queryable.ts'
import { MAINTAIN } from './sql/maintain.ts'

export interface MaintainOptions {
  /**
   * The queue with this retention. It is stored until a later call changes it; rows of queues without a
   * stored retention are kept. Default: the durations apply to all queues without a stored retention.
   */
  readonly queue?: string
  /** How long delivered events are kept. */
  readonly deliveredRetention: Duration
  /** How long dead letters are kept. Operators must triage them within this time. */
  readonly deadLetterRetention: Duration
}

export interface MaintenanceResult {
  /** Number of partitions created for the next days. */
  readonly partitionsCreated: number
  /** Number of partitions dropped, with all rows that are no longer needed. */
  readonly partitionsDropped: number
  /** Number of rows deleted where no partition could be dropped. */
  readonly rowsDeleted: number
}

/**
 * Creates and drops partitions. Consumers do this every hour for their queue. Call it for each queue whose
 * consumers have a role without this permission.
 */
export async function maintain(pool: Pool, options: MaintainOptions): Promise<MaintenanceResult> {
  const keep = [options.deliveredRetention, options.deadLetterRetention].map(parseDuration)
  if (keep.includes(undefined)) {
    const message = `deliveredRetention and deadLetterRetention: expected durations such as '2d', got ${options.deliveredRetention} and ${options.deadLetterRetention}`
    throw new RedriveError('POLICY_INVALID', message)
  }
  const [maintained] = await rowsOf<MaintenanceResult>(pool, MAINTAIN, [
    ...keep,
    options.queue ?? null,
  ])
  return maintained as MaintenanceResult
}
