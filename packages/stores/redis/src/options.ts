import { type Duration, formatDuration, parseDuration, RedriveError } from '@redrive/core'
import { type Clock, systemClock } from '@redrive/runtime'
import { isClient, type RedisClient } from './client.ts'

export interface RedisStoreOptions {
  /**
   * A connected client of `@redis/client` (or `redis`) or of `ioredis`, or a cluster of either. It stays
   * yours: the store does not close it.
   */
  readonly client: RedisClient
  /**
   * Begins the names of all keys: `{prefix}:…`. The braces keep them on one node of a cluster. Stores with
   * the same prefix are one store. Letters, digits, dots, colons, - and _.
   */
  readonly prefix: string
  /** How long a dead letter is kept, by the server's clock from its last `save`. From '1s' to '3650d'. */
  readonly retention: Duration
  /** Dead letters it holds at most; `save` then rejects with `DLQ_FULL`. Default: no such bound. */
  readonly maxEntries?: number
  /**
   * Memory it takes at most, in bytes of the server, as `stats` counts them; `save` then rejects with
   * `DLQ_FULL`. Default 256 MiB.
   */
  readonly maxBytes?: number
  /**
   * How long nobody else sends a dead letter that a process was sending when it was last heard of. It is
   * renewed at a third while `send` runs. From '1s' to '1h'. Default '30s'.
   */
  readonly lease?: Duration
  /** How long the server may take to answer; then a call rejects with `OUTCOME_UNKNOWN`. Default '5s'. */
  readonly timeout?: Duration
  /** For timeout and lease; what is over is decided by the server's. Default: the system's. */
  readonly clock?: Clock
}

export interface ResolvedOptions {
  readonly client: RedisClient
  readonly prefix: string
  readonly retentionMs: number
  readonly maxEntries: number
  readonly maxBytes: number
  readonly leaseMs: number
  readonly timeoutMs: number
  readonly clock: Clock
}

/** 256 MiB: some hundred thousand events. More than that belongs on a disk, not in memory. */
const MAX_BYTES = 268_435_456
/** 1 s: less is over before anybody could look. */
const LEAST_RETENTION_MS = 1_000
/** Ten years: longer is a mistake in the unit. */
const MOST_RETENTION_MS = 315_360_000_000
/** 30 s: rides out a long pause of the process, and what a dead one was sending waits no longer. */
const LEASE_MS = 30_000
/** 1 s: a busy process may miss the renewal of anything shorter. */
const LEAST_LEASE_MS = 1_000
/** 1 h: what a dead process was sending is stuck for that long. */
const MOST_LEASE_MS = 3_600_000
/** 5 s: far beyond any healthy answer. A client that is not connected keeps commands for ever otherwise. */
const TIMEOUT_MS = 5_000
/** 1 min: whoever saves is waiting. */
const MOST_TIMEOUT_MS = 60_000

export function resolveOptions(options: RedisStoreOptions): ResolvedOptions {
  const { client, prefix, retention, lease = LEASE_MS, timeout = TIMEOUT_MS } = options
  const { maxEntries = Number.MAX_SAFE_INTEGER, maxBytes = MAX_BYTES } = options
  const { clock = systemClock } = options
  const problems: string[] = []
  if (!isClient(client)) problems.push('client: expected a client of @redis/client or ioredis')
  if (!/^[\w.:-]+$/.test(prefix)) {
    problems.push(`prefix: expected letters, digits, dots, colons, - or _, got '${prefix}'`)
  }
  wholeNumber('maxEntries', maxEntries, problems)
  wholeNumber('maxBytes', maxBytes, problems)
  const retentionMs = between(
    'retention',
    retention,
    [LEAST_RETENTION_MS, MOST_RETENTION_MS],
    problems,
  )
  const leaseMs = between('lease', lease, [LEAST_LEASE_MS, MOST_LEASE_MS], problems)
  const timeoutMs = between('timeout', timeout, [1, MOST_TIMEOUT_MS], problems)
  refuse(problems)
  return { client, prefix, retentionMs, maxEntries, maxBytes, leaseMs, timeoutMs, clock }
}

function wholeNumber(name: string, value: number, problems: string[]): void {
  if (Number.isSafeInteger(value) && value > 0) return
  problems.push(`${name}: expected a whole number from 1, got ${value}`)
}

function between(
  name: string,
  value: Duration,
  [least, most]: readonly [number, number],
  problems: string[],
): number {
  const ms = parseDuration(value) ?? -1
  if (ms >= least && ms <= most) return ms
  const range = `from '${formatDuration(least)}' to '${formatDuration(most)}'`
  problems.push(`${name}: expected a duration ${range}, got ${value}`)
  return 0
}

function refuse(problems: readonly string[]): void {
  if (problems.length === 0) return
  const message = `redisStore() cannot be set up:\n- ${problems.join('\n- ')}`
  throw new RedriveError('POLICY_INVALID', message, { problems })
}
