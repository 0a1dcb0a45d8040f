import { type Duration, formatDuration, parseDuration, RedriveError } from '@redrive/core'
import { type Clock, systemClock } from '@redrive/runtime'
import { isClient, type RedisClient } from '@redrive/redis-internal'

export interface RedisStoreOptions {
  /**
   * A connected client of `@redis/client` (or `redis`) or of `ioredis`, or a cluster of either. The caller
   * owns it: the store does not close it.
   */
  readonly client: RedisClient
  /**
   * The start of all key names: `{prefix}:…`. The braces keep them on one node of a cluster. Stores with
   * the same prefix are one store. Allowed: letters, digits, dots, colons, - and _.
   */
  readonly prefix: string
  /** How long a dead letter is kept, by the server's clock from its last `save` ('1s'–'3650d'). */
  readonly retention: Duration
  /** Maximum number of dead letters; `save` then rejects with `DLQ_FULL`. Default: no limit. */
  readonly maxEntries?: number
  /**
   * Maximum memory in bytes of the server, as `stats` counts them; `save` then rejects with
   * `DLQ_FULL`. Default 256 MiB.
   */
  readonly maxBytes?: number
  /**
   * How long a claim lasts without a renewal. Until then no other process sends the dead letter of a
   * crashed one. It is renewed after a third while `send` runs ('1s'–'1h', default '30s').
   */
  readonly lease?: Duration
  /** Maximum time for a response of the server; then a call rejects with `OUTCOME_UNKNOWN`. Default '5s'. */
  readonly timeout?: Duration
  /** Clock for timeout and lease renewal. The server's clock decides what has expired. Default: the system's. */
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

/** 256 MiB: some hundred thousand events. More should be stored on disk, not in memory. */
const MAX_BYTES = 268_435_456
/** 1 s: a shorter retention ends before a user can see the dead letter. */
const MIN_RETENTION_MS = 1_000
/** Ten years: a longer one is a mistake in the unit. */
const MAX_RETENTION_MS = 315_360_000_000
/** 30 s: longer than a long pause of a process, and short enough for the dead letters of a crashed one. */
const LEASE_MS = 30_000
/** 1 s: a busy process may miss the renewal of anything shorter. */
const MIN_LEASE_MS = 1_000
/** 1 h: the dead letter of a crashed process is blocked for that long. */
const MAX_LEASE_MS = 3_600_000
/** 5 s: much longer than any healthy response. Otherwise a disconnected client queues commands forever. */
const TIMEOUT_MS = 5_000
/** 1 min: the caller of `save` waits. */
const MAX_TIMEOUT_MS = 60_000

export function resolveOptions(options: RedisStoreOptions): ResolvedOptions {
  const { client, prefix, retention, lease = LEASE_MS, timeout = TIMEOUT_MS } = options
  const { maxEntries = Number.MAX_SAFE_INTEGER, maxBytes = MAX_BYTES } = options
  const { clock = systemClock } = options
  const problems: string[] = []
  if (!isClient(client)) problems.push('client: expected a client of @redis/client or ioredis')
  if (!/^[\w.:-]+$/.test(prefix)) {
    problems.push(`prefix: expected letters, digits, dots, colons, - or _, got "${prefix}"`)
  }
  wholeNumber('maxEntries', maxEntries, problems)
  wholeNumber('maxBytes', maxBytes, problems)
  const retentionMs = between(
    'retention',
    retention,
    [MIN_RETENTION_MS, MAX_RETENTION_MS],
    problems,
  )
  const leaseMs = between('lease', lease, [MIN_LEASE_MS, MAX_LEASE_MS], problems)
  const timeoutMs = between('timeout', timeout, [1, MAX_TIMEOUT_MS], problems)
  refuse(problems)
  return { client, prefix, retentionMs, maxEntries, maxBytes, leaseMs, timeoutMs, clock }
}

function wholeNumber(name: string, value: number, problems: string[]): void {
  if (Number.isSafeInteger(value) && value > 0) return
  problems.push(`${name}: expected a whole number of at least 1, got ${value}`)
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
  problems.push(`${name}: expected a duration ${range}, got "${value}"`)
  return 0
}

function refuse(problems: readonly string[]): void {
  if (problems.length === 0) return
  const message = `The options of redisStore() are invalid:\n- ${problems.join('\n- ')}`
  throw new RedriveError('POLICY_INVALID', message, { problems })
}
