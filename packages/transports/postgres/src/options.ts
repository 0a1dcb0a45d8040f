import { type Duration, parseDuration, RedriveError } from '@redrive/core'
import type { Pool } from 'pg'

export interface PostgresOptions {
  /**
   * Pool of connections to the primary, never to a replica. A transport uses one connection per turn. All
   * transports of the pool share one more to receive `outbox.wake()`.
   */
  readonly pool: Pool
  /** The queue that the outbox adds to. */
  readonly queue: string
  /** `'lane'` handles events of one lane one after the other, in the order they were added. Default `'none'`. */
  readonly order?: 'none' | 'lane'
  /**
   * Time after which other consumers take over the events of a crashed consumer. The lease is renewed while
   * handlers run (at least '1s', default '30s').
   */
  readonly lease?: Duration
  /**
   * Whether to keep a connection for `outbox.wake()`. Use `false` behind a pooler in transaction mode; there,
   * consumers poll. Default `true`.
   */
  readonly listen?: boolean
  /** Retention of delivered events. The policy sets the retention of dead letters. Default '2d'. */
  readonly deliveredRetention?: Duration
  /** Whether to create and drop partitions every hour. If the role may not do this, use `false` and call `maintain` yourself. Default `true`. */
  readonly maintain?: boolean
}

export interface ResolvedOptions {
  readonly pool: Pool
  readonly queue: string
  readonly order: 'none' | 'lane'
  readonly leaseMs: number
  readonly isListening: boolean
  readonly deliveredRetentionMs: number
  readonly isMaintaining: boolean
}

/** 30 s: the default timeout of an attempt. A crashed consumer then delays events no longer than a slow one. */
const LEASE_MS = 30_000
/** 1 s: with less, a pause of Node.js would lose leases. */
const MIN_LEASE_MS = 1_000
/** 2 days: enough to look up a delivery of yesterday. */
const DELIVERED_RETENTION_MS = 172_800_000

export function resolveOptions(options: PostgresOptions): ResolvedOptions {
  const { pool, queue, order = 'none', lease = LEASE_MS } = options
  const { listen = true, deliveredRetention = DELIVERED_RETENTION_MS, maintain = true } = options
  const problems: string[] = []
  if (queue === '') problems.push('queue: expected the name of the queue')
  if (order !== 'none' && order !== 'lane') {
    problems.push(`order: expected 'none' or 'lane', got '${String(order)}'`)
  }
  const leaseMs = parseDuration(lease)
  if (leaseMs === undefined || leaseMs < MIN_LEASE_MS) {
    problems.push(`lease: expected a duration of '1s' or more, got ${lease}`)
  }
  const deliveredRetentionMs = parseDuration(deliveredRetention)
  if (deliveredRetentionMs === undefined) {
    problems.push(`deliveredRetention: expected a duration such as '2d', got ${deliveredRetention}`)
  }
  if (typeof (pool as Pool | undefined)?.connect !== 'function') {
    problems.push("pool: expected a Pool of 'pg'")
  } else if (pool.options.max < MIN_CONNECTIONS) {
    problems.push(
      `pool: expected "max" of ${MIN_CONNECTIONS} or more, got ${pool.options.max}: one connection to claim events, one to listen, one for maintenance, and at least one for handlers`,
    )
  }
  if (leaseMs === undefined || deliveredRetentionMs === undefined || problems.length > 0) {
    const message = `The options of postgres() are invalid:\n- ${problems.join('\n- ')}`
    throw new RedriveError('POLICY_INVALID', message, { problems })
  }
  return {
    pool,
    queue,
    order,
    leaseMs,
    isListening: listen,
    deliveredRetentionMs,
    isMaintaining: maintain,
  }
}

const MIN_CONNECTIONS = 4
