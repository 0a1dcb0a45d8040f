import type { Duration } from '@redrive/core'
import { type Check, readOptions, withMethods } from '@redrive/core/internal'
import { type Clock, systemClock } from '@redrive/runtime'
import type { Pool } from 'pg'

export interface PostgresStoreOptions {
  /** Pool of connections to the primary, never to a replica. The caller owns it: the store does not close it. */
  readonly pool: Pool
  /** Name of the store. Stores with the same name in a database are one store. Default 'default'. */
  readonly name?: string
  /**
   * Maximum number of dead letters; `save` then rejects with `DLQ_FULL`. Several processes can exceed it by
   * the saves that they do at the same time (1–100,000,000, default 1,000,000).
   */
  readonly maxEntries?: number
  /**
   * How long a claim lasts without a renewal. Until then no other process sends the dead letter of a
   * crashed one. It is renewed after a third while `send` runs ('1s'–'1h', default '30s').
   */
  readonly lease?: Duration
  /** Clock for the renewal of leases. The server's clock decides what has expired. Default: the system's. */
  readonly clock?: Clock
}

export interface ResolvedOptions {
  readonly pool: Pool
  readonly name: string
  readonly maxEntries: number
  readonly leaseMs: number
  readonly clock: Clock
}

/** 1,000,000: about a gigabyte. A sink that is down for longer needs a decision, not more disk. */
const MAX_ENTRIES = 1_000_000
/** 30 s: longer than a long pause of a process, and short enough for the dead letters of a crashed one. */
const LEASE_MS = 30_000
/** 1 s: a busy process may miss the renewal of anything shorter. 1 h: the dead letter of a crashed process waits for it. */
const LEASE = { min: 1_000, max: 3_600_000 }

const POOL: Check = withMethods('a pool of pg: new Pool({ connectionString })', [
  'connect',
  'query',
])

const CLOCK: Check = withMethods('a clock with now() and after()', ['now', 'after'])

const NAME: Check = {
  isValid: (value) => typeof value === 'string' && /^[\w.:-]{1,200}$/.test(value),
  expected: '1 to 200 letters, digits, dots, colons, - or _',
}

export function resolveOptions(options: PostgresStoreOptions): ResolvedOptions {
  return readOptions('postgresStore()', options, (top) => ({
    pool: top.required<Pool>('pool', POOL),
    name: top.ifGiven<string>('name', NAME) ?? 'default',
    maxEntries: top.integer('maxEntries', MAX_ENTRIES, { min: 1, max: 100_000_000 }),
    leaseMs: top.duration('lease', LEASE_MS, LEASE),
    clock: top.ifGiven<Clock>('clock', CLOCK) ?? systemClock,
  }))
}
