import type { ClaimedRow } from './delivery.ts'

/** 20 ms after a claim without rows, then doubled. */
const IDLE_BASE_MS = 20
/** 500 ms: the maximum delay of an event without a notification. */
const IDLE_CAP_MS = 500
/**
 * 1 s between two full scans of all due rows. They find rows that were committed late and rows of crashed
 * consumers.
 */
const FULL_SCAN_MS = 1_000
/** After a slow full scan, the next one waits 20 times its duration, so that scans use at most 5 % of the time. */
const FULL_SCAN_SHARE = 20
/** 1 s: an event that is committed more than 1 s after it was added waits for the next full scan. */
const OVERLAP_MS = 1_000
/** 1 minute: a retry that is due within it is claimed on time; others within a second. */
const TIMED_RETRY_MS = 60_000
/** Retries due within 10 ms of each other share a timer. */
const TIMER_STEP_MS = 10
const NO_WATERMARK = '-infinity'

/** One claim: the rows that it may search. */
export interface Claim {
  readonly maxRows: number
  readonly startedAt: number
  readonly isFullScan: boolean
  readonly watermark: string
}

/** A turn that claims no rows. */
export const NO_CLAIM: Claim = {
  maxRows: 0,
  startedAt: 0,
  isFullScan: false,
  watermark: NO_WATERMARK,
}

/** When the next claim runs, and which rows it searches. */
export class ClaimSchedule {
  readonly #onDue: () => void
  /** Time of the next claim, because the last one found no rows. */
  #claimAfter = 0
  #idleMs = IDLE_BASE_MS
  #fullScanAt = 0
  #watermark = NO_WATERMARK
  readonly #retryTimers = new Map<number, NodeJS.Timeout>()
  #claimTimer: NodeJS.Timeout | undefined

  constructor(onDue: () => void) {
    this.#onDue = onDue
  }

  get isDue(): boolean {
    return performance.now() >= this.#claimAfter
  }

  next(maxRows: number): Claim {
    const startedAt = performance.now()
    const isFullScan = maxRows > 0 && startedAt >= this.#fullScanAt
    const watermark = isFullScan ? NO_WATERMARK : this.#watermark
    return { maxRows, startedAt, isFullScan, watermark }
  }

  /** Claims rows without further waiting. */
  claimNow(): void {
    this.#claimAfter = 0
    this.#idleMs = IDLE_BASE_MS
    this.#onDue()
  }

  /** Schedules a claim for the time when a retry is due. */
  claimIn(delayMs: number): void {
    if (delayMs > TIMED_RETRY_MS) return
    const at = Math.ceil((performance.now() + delayMs) / TIMER_STEP_MS) * TIMER_STEP_MS
    if (this.#retryTimers.has(at)) return
    const timer = setTimeout(() => {
      this.#retryTimers.delete(at)
      this.claimNow()
    }, at - performance.now()).unref()
    this.#retryTimers.set(at, timer)
  }

  /** Lets the next claim search all due rows: a returned row keeps its due time, which may be below the watermark. */
  dropWatermark(): void {
    this.#watermark = NO_WATERMARK
  }

  /** Sets the time and the watermark of the next claim. `hasMore`: there are probably more rows now. */
  claimed(claim: Claim, rows: readonly ClaimedRow[], hasMore: boolean): void {
    this.scanned(claim)
    const last = rows.at(-1)
    // Uses the clock of the database, which set the due times. Rows arrive in this order; in another order,
    // the watermark would only be lower than necessary.
    if (last !== undefined)
      this.#watermark = new Date(Math.floor(Number(last[2])) - OVERLAP_MS).toISOString()
    if (rows.length > 0) this.#idleMs = IDLE_BASE_MS
    if (hasMore) this.#onDue()
    else this.waitIdle()
  }

  /** Schedules the next full scan, also after a failed one: it may have failed because it took too long. */
  scanned({ isFullScan, startedAt }: Claim): void {
    if (!isFullScan) return
    const tookMs = performance.now() - startedAt
    this.#fullScanAt = startedAt + Math.max(FULL_SCAN_MS, tookMs * FULL_SCAN_SHARE)
  }

  waitIdle(): void {
    const waitMs = this.#idleMs * (0.5 + Math.random() / 2)
    this.#idleMs = Math.min(IDLE_CAP_MS, this.#idleMs * 2)
    this.#claimAfter = performance.now() + waitMs
    clearTimeout(this.#claimTimer)
    this.#claimTimer = setTimeout(() => {
      this.#claimAfter = 0
      this.#onDue()
    }, waitMs)
  }

  stop(): void {
    for (const timer of [this.#claimTimer, ...this.#retryTimers.values()]) clearTimeout(timer)
  }
}
