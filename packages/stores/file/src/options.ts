import { type Duration, parseDuration, RedriveError } from '@redrive/core'
import { type Clock, systemClock } from '@redrive/runtime'

export interface FileStoreOptions {
  /**
   * Where dead letters are kept. Created when it is missing, for the owner only. Any number of processes
   * of the same user may share it, on one machine or on a network file system that honours O_EXCL and fsync.
   */
  readonly directory: string
  /**
   * When a save is acknowledged. `'batch'`: after an fsync, which all that wait share. `'always'`:
   * after an fsync of its own. `'never'`: when the operating system has it, so that it survives the
   * death of the process and not that of the machine. Default `'batch'`.
   */
  readonly fsync?: 'always' | 'batch' | 'never'
  /** A file that has reached this size is finished and another one begun. 4,096 to 2^30. Default 16 MB. */
  readonly maxFileBytes?: number
  /**
   * Bytes of all dead letters together; `save` then rejects with `DLQ_FULL`. Other processes' saves
   * are counted as of the last call that looked at them. What was replayed or deleted takes room on
   * disk until `cleanup`, and is not counted. Default: no bound but the disk.
   */
  readonly maxBytes?: number
  /** What `cleanup()` without a moment keeps. Nothing is removed unless `cleanup` is called. Default '30d'. */
  readonly retention?: Duration
  /** How soon others may send what a process was sending that died. '1s' or more. Default '30s'. */
  readonly lease?: Duration
  /** Default: `systemClock`. */
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

/** 16 MB: some 16,000 dead letters, whose index is read in a millisecond, and a day of most services. */
const MAX_FILE_BYTES = 16 * 2 ** 20
/** A page of the disk: smaller files would be all folder and no content. */
const LEAST_FILE_BYTES = 4_096
/** Places in a file are kept in 32 bits, and the last line may go beyond the size. */
const MOST_FILE_BYTES = 2 ** 30
/** 30 days: as long as most logs and queues keep what nobody asked for. */
const RETENTION: Duration = '30d'
/** 30 s: rides out a long pause of the process, and what a dead one was sending waits no longer. */
const LEASE: Duration = '30s'
/** 1 s: below that a busy machine loses its claims, and others send the same once more. */
const LEAST_LEASE_MS = 1_000

export function resolveOptions(options: FileStoreOptions): ResolvedOptions {
  const { directory, fsync = 'batch', maxFileBytes = MAX_FILE_BYTES } = options
  const { maxBytes = Number.POSITIVE_INFINITY, retention = RETENTION, lease = LEASE } = options
  const problems: string[] = []
  if (typeof directory !== 'string' || directory === '') {
    problems.push("directory: expected a path such as '/var/lib/orders/dead-letters'")
  }
  if (!['always', 'batch', 'never'].includes(fsync)) {
    problems.push(`fsync: expected 'always', 'batch' or 'never', got '${fsync}'`)
  }
  const isInRange = maxFileBytes >= LEAST_FILE_BYTES && maxFileBytes <= MOST_FILE_BYTES
  if (!Number.isInteger(maxFileBytes) || !isInRange) {
    problems.push(`maxFileBytes: expected 4096 to 2^30, got ${maxFileBytes}`)
  }
  if (!(maxBytes > 0)) problems.push(`maxBytes: expected a number above zero, got ${maxBytes}`)
  const retentionMs = duration('retention', retention, 1, problems)
  const leaseMs = duration('lease', lease, LEAST_LEASE_MS, problems)
  if (problems.length > 0) {
    const message = `fileStore() cannot be set up:\n- ${problems.join('\n- ')}`
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
