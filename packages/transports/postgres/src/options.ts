import { type Duration, parseDuration, RedriveError } from '@redrive/core'
import type { Pool } from 'pg'

export interface PostgresOptions {
  /**
   * Of the primary, never of a replica. A transport borrows a connection for each turn; one more, for all
   * transports of the pool together, is kept to hear `outbox.wake()`.
   */
  readonly pool: Pool
  /** The queue that the outbox adds to. */
  readonly queue: string
  /** `'lane'`: events of one lane one after the other, in the order they were added. Default `'none'`. */
  readonly order?: 'none' | 'lane'
  /**
   * How long a consumer that is not heard of keeps what it took. Renewed while handlers run, so it says
   * how soon others take over from one that died. Default '30s'.
   */
  readonly lease?: Duration
  /**
   * Keeps a connection to hear `outbox.wake()`. `false` behind a pooler that gives every transaction
   * another connection: there, consumers look by themselves. Default `true`.
   */
  readonly listen?: boolean
  /** How long delivered events are kept. Dead letters are kept as long as the policy says. Default '2d'. */
  readonly keepDelivered?: Duration
  /** Makes and drops partitions, every hour. `false` where the role may not: call `maintain` yourself. Default `true`. */
  readonly maintain?: boolean
}

export interface ResolvedOptions {
  readonly pool: Pool
  readonly queue: string
  readonly order: 'none' | 'lane'
  readonly leaseMs: number
  readonly isListening: boolean
  readonly keepDeliveredMs: number
  readonly isMaintaining: boolean
}

/** 30 s: as long as an attempt may take by default, so a dead consumer holds nothing up for longer than a slow one. */
const LEASE_MS = 30_000
/** 1 s: below that, a pause of the runtime would lose leases. */
const LEAST_LEASE_MS = 1_000
/** 2 days: enough to look yesterday's delivery up. */
const KEEP_DELIVERED_MS = 172_800_000

export function resolveOptions(options: PostgresOptions): ResolvedOptions {
  const { pool, queue, order = 'none', lease = LEASE_MS } = options
  const { listen = true, keepDelivered = KEEP_DELIVERED_MS, maintain = true } = options
  const problems: string[] = []
  if (queue === '') problems.push('queue: expected the name of the queue')
  if (order !== 'none' && order !== 'lane') {
    problems.push(`order: expected 'none' or 'lane', got '${String(order)}'`)
  }
  const leaseMs = parseDuration(lease)
  if (leaseMs === undefined || leaseMs < LEAST_LEASE_MS) {
    problems.push(`lease: expected a duration of '1s' or more, got ${lease}`)
  }
  const keepDeliveredMs = parseDuration(keepDelivered)
  if (keepDeliveredMs === undefined) {
    problems.push(`keepDelivered: expected a duration such as '2d', got ${keepDelivered}`)
  }
  if (typeof (pool as Pool | undefined)?.connect !== 'function') {
    problems.push("pool: expected a Pool of 'pg'")
  } else if (pool.options.max < LEAST_CONNECTIONS) {
    problems.push(
      `pool: max is ${pool.options.max}; give it ${LEAST_CONNECTIONS} or more: one is for turns, one listens, one is for upkeep, and handlers need their own`,
    )
  }
  if (leaseMs === undefined || keepDeliveredMs === undefined || problems.length > 0) {
    const message = `postgres() cannot be set up:\n- ${problems.join('\n- ')}`
    throw new RedriveError('POLICY_INVALID', message, { problems })
  }
  return {
    pool,
    queue,
    order,
    leaseMs,
    isListening: listen,
    keepDeliveredMs,
    isMaintaining: maintain,
  }
}

const LEAST_CONNECTIONS = 4
