import type { Duration } from '@redrive/core'
import { type Check, named, readOptions, type Section, withMethods } from '@redrive/core/internal'
import type { Pool } from 'pg'
import { readSchema, type Tables } from './schema.ts'

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
  /** The schema of the outbox, as given to `migrate`. Default 'redrive'. */
  readonly schema?: string
}

export interface ResolvedOptions extends Tables {
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

const DAY_MS = 86_400_000
/** At most a day: the events of a crashed consumer wait that long. */
const LEASE = { min: MIN_LEASE_MS, max: DAY_MS }
/** Ten years: a longer one is a mistake in the unit. */
export const RETENTION: { readonly min: number; readonly max: number } = {
  min: 0,
  max: 3_650 * DAY_MS,
}

export function resolveOptions(options: PostgresOptions): ResolvedOptions {
  return readOptions('postgres()', options, (top) => {
    const pool = readPool(top)
    const max = POOL.isValid(pool) ? (pool.options as { max?: number } | undefined)?.max : undefined
    if (max !== undefined && max < MIN_CONNECTIONS) {
      top.problem(
        'pool',
        `expected "max" of ${MIN_CONNECTIONS} or more, got ${max}: one connection to claim events, one to listen, one for maintenance, and at least one for handlers`,
      )
    }
    return {
      pool,
      queue: readQueue(top),
      order: top.choice('order', 'none', ['none', 'lane']),
      leaseMs: top.duration('lease', LEASE_MS, LEASE),
      isListening: top.boolean('listen', true),
      deliveredRetentionMs: top.duration('deliveredRetention', DELIVERED_RETENTION_MS, RETENTION),
      isMaintaining: top.boolean('maintain', true),
      schema: readSchema(top),
    }
  })
}

const MIN_CONNECTIONS = 4

export const POOL: Check = withMethods(
  "a Pool of 'pg' such as new Pool({ connectionString: process.env.DATABASE_URL })",
  ['connect'],
)

export const readPool = (top: Section): Pool => top.required('pool', POOL)
export const readQueue = (top: Section): string =>
  top.required('queue', named('the name of a queue'))

/** Options of `postgres()` that `postgresSource()` and `postgresSink()` do not use. A program may pass one object to all. */
const OF_TRANSPORT = ['order', 'lease', 'listen', 'deliveredRetention', 'maintain']

/** Reads what the calls need that have no other options. */
export function readQueueOptions(
  call: string,
  options: unknown,
): Pick<ResolvedOptions, 'pool' | 'schema' | 'queue'> {
  return readOptions(call, options, (top) => {
    for (const key of OF_TRANSPORT) top.raw(key)
    return { pool: readPool(top), queue: readQueue(top), schema: readSchema(top) }
  })
}
