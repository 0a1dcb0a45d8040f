import { type Duration, parseDuration, RedriveError } from '@redrive/core'
import { type Clock, systemClock } from '@redrive/runtime'

export interface FileStoreOptions {
  /**
   * The folder of the dead letters. Created when it is missing, for the owner only. Any number of processes
   * of the same user may share it, on one machine or on a network file system with O_EXCL and fsync.
   */
  readonly directory: string
  /**
   * When a save is acknowledged. `'batch'`: after an fsync, which waiting saves share. `'always'`:
   * after a separate fsync. `'never'`: when the operating system has the data, so that it survives a
   * crash of the process but not of the machine. Default `'batch'`.
   */
  readonly fsync?: 'always' | 'batch' | 'never'
  /** Size at which a file is closed and a new one started (4,096–2^30, default 16 MB). */
  readonly maxFileBytes?: number
  /**
   * Maximum bytes of all dead letters; `save` then rejects with `DLQ_FULL`. Saves of other processes
   * are counted as of the last call that read them. Replayed and deleted dead letters use disk space until
   * `cleanup`, but do not count. Default: limited only by the disk.
   */
  readonly maxBytes?: number
  /** How long `cleanup()` without a time keeps dead letters. Nothing is removed unless `cleanup` is called. Default '30d'. */
  readonly retention?: Duration
  /** How long others wait before they send a dead letter of a crashed process (at least '1s', default '30s'). */
  readonly lease?: Duration
  /** Clock for leases and timestamps; a test can control it. Default: the system's. */
  readonly clock?: Clock
}

export interface ResolvedOptions {
  readonly directory: string
  readonly fsync: 'always' | 'batch' | 'never'
  readonly maxFileBytes: number
  readonly maxBytes: number
  readonly retentionMs: number
  readonly leaseMs: number
  readonly clock: Clock
}

/** 16 MB: about 16,000 dead letters, a day of most services. Its index is read in a millisecond. */
const DEFAULT_FILE_BYTES = 16 * 2 ** 20
/** A page of the disk: smaller files would need more space for folders than for content. */
const MIN_FILE_BYTES = 4_096
/** Offsets in a file have 32 bits, and the last line may exceed the size. */
const MAX_FILE_BYTES = 2 ** 30
/** 30 days: the usual retention of logs and queues. */
const RETENTION: Duration = '30d'
/** 30 s: longer than a long pause of a process, and short enough for the dead letters of a crashed one. */
const LEASE: Duration = '30s'
/** 1 s: with less, a busy machine loses its claims, and others send the same dead letter again. */
const MIN_LEASE_MS = 1_000

export function resolveOptions(options: FileStoreOptions): ResolvedOptions {
  const { directory, fsync = 'batch', maxFileBytes = DEFAULT_FILE_BYTES } = options
  const { maxBytes = Number.POSITIVE_INFINITY, retention = RETENTION, lease = LEASE } = options
  const problems: string[] = []
  if (typeof directory !== 'string' || directory === '') {
    problems.push("directory: expected a path such as '/var/lib/orders/dead-letters'")
  }
  if (!['always', 'batch', 'never'].includes(fsync)) {
    problems.push(`fsync: expected 'always', 'batch' or 'never', got "${fsync}"`)
  }
  const isInRange = maxFileBytes >= MIN_FILE_BYTES && maxFileBytes <= MAX_FILE_BYTES
  if (!Number.isInteger(maxFileBytes) || !isInRange) {
    problems.push(`maxFileBytes: expected a number from 4096 to 2^30, got ${maxFileBytes}`)
  }
  if (!(maxBytes > 0)) problems.push(`maxBytes: expected a number above zero, got ${maxBytes}`)
  const retentionMs = duration('retention', retention, 1, problems)
  const leaseMs = duration('lease', lease, MIN_LEASE_MS, problems)
  if (problems.length > 0) {
    const message = `The options of fileStore() are invalid:\n- ${problems.join('\n- ')}`
    throw new RedriveError('POLICY_INVALID', message, { problems })
  }
  const clock = options.clock ?? systemClock
  return { directory, fsync, maxFileBytes, maxBytes, retentionMs, leaseMs, clock }
}

function duration(name: string, value: Duration, least: number, problems: string[]): number {
  const ms = parseDuration(value)
  if (ms === undefined || ms < least) {
    problems.push(
      `${name}: expected a duration of ${least} ms or more, such as '30s', got ${value}`,
    )
  }
  return ms ?? 0
}
