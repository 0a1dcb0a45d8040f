import { type Delivery, type FailureCycle, type FailureRecord, RedriveError } from '@redrive/core'
import { LATE_SHARE, LONG_RUN_MS } from '@redrive/core/internal'
import type { Clock } from './clock.ts'

/** The attempt, as the handler sees it. */
export interface AttemptContext<Tx = undefined> {
  /** Fires when the attempt times out, the consumer stops, or the broker takes the delivery back. Pass it to every call that waits. */
  readonly signal: AbortSignal
  /** Number of the attempt, from 1. Failures while the dependency was or may have been unhealthy are not counted. */
  readonly attempt: number
  /** Failed runs of this cycle before this one, counted or not. */
  readonly runs: number
  /** Number of the cycle, from 1. A replay starts the next one. */
  readonly cycle: number
  /** Earlier failures of this cycle, counted or not, oldest first. The policy limits their number. */
  readonly history: readonly FailureRecord[]
  /** Set when a user replayed this message. */
  readonly replayId: string | undefined
  /** The inbox's transaction; undefined without an inbox. */
  readonly tx: Tx
  /**
   * Tells that this message needs no work, before the handler returns. The message is settled. Without this, its
   * success shows that the dependency works, although the handler did not call it. If the handler throws after it, the
   * failure shows nothing about the dependency.
   */
  readonly skip: () => void
}

/**
 * One run of the handler. It is also the handler's context and a node in the list of deadlines.
 * There is one object per message, because this is the hot path.
 */
export class Attempt<D extends Delivery = Delivery> implements AttemptContext<unknown> {
  readonly delivery: D
  readonly failures: FailureCycle
  readonly alone: boolean
  readonly tx: unknown = undefined
  /** Why its signal was aborted; undefined while the handler may run. */
  interruptedBy: RedriveError | undefined = undefined
  /** True when the broker took the delivery back: another consumer may own the message. */
  isLost = false
  /** True when it runs for longer than `LONG_RUN_MS`. */
  isLong = false
  alreadyHandled = false
  /** True when the handler said that the message needs no work. */
  isSkipped = false
  /** W3C `traceparent` of its span; undefined without tracing. */
  trace: string | undefined = undefined
  startedTick = 0
  before: Attempt<D> | undefined = undefined
  behind: Attempt<D> | undefined = undefined
  #controller: AbortController | undefined = undefined
  #abortReason: unknown = undefined

  constructor(delivery: D, failures: FailureCycle, alone: boolean) {
    this.delivery = delivery
    this.failures = failures
    this.alone = alone
  }

  /** Created on first access: an AbortController costs more than the rest of the loop. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController()
      if (this.#abortReason !== undefined) this.#controller.abort(this.#abortReason)
    }
    return this.#controller.signal
  }
  get attempt(): number {
    return this.failures.attempts + 1
  }
  get runs(): number {
    return this.failures.runs
  }
  get cycle(): number {
    return this.failures.number
  }
  get history(): readonly FailureRecord[] {
    return this.failures.history
  }
  get replayId(): string | undefined {
    return this.delivery.replayId
  }

  /** A function without `this`: handlers take it out of the context. It is created on access, so that a message costs nothing. */
  get skip(): () => void {
    return () => {
      this.isSkipped = true
    }
  }

  abort(reason: unknown): void {
    this.#abortReason = reason
    this.#controller?.abort(reason)
  }
}

/** The timing of an attempt that ended. */
export interface AttemptTiming {
  readonly startedAt: number
  /** Attempts that ran at that time, including this one. */
  readonly inFlight: number
}

/** A timeout has at least 8 ticks. Lateness is measured to an eighth, and one timer serves every attempt. */
const TICKS = 8
/** 1 s at most: a tick is also the precision of the last success of the dependency. */
const LONGEST_TICK_MS = 1_000

/**
 * The attempts in flight, oldest first. All share one timeout, so their deadlines are in start order
 * and one coarse timer is enough. An attempt needs no timer and no clock call.
 */
export class Deadlines<D extends Delivery> {
  readonly #clock: Clock
  readonly #timeoutMs: number
  readonly #tickMs: number
  readonly #onTick: () => void
  readonly #onLong: (count: number) => void
  readonly #onTimeout: (attempt: Attempt<D>, error: RedriveError) => void
  #first: Attempt<D> | undefined
  #last: Attempt<D> | undefined
  #tick = 0
  #tickAt = 0
  #cancel: (() => void) | undefined

  constructor(
    clock: Clock,
    timeoutMs: number,
    onTick: () => void,
    onLong: (count: number) => void,
    onTimeout: (attempt: Attempt<D>, error: RedriveError) => void,
  ) {
    this.#clock = clock
    this.#timeoutMs = timeoutMs
    this.#tickMs = Math.min(timeoutMs / TICKS, LONGEST_TICK_MS)
    this.#onTick = onTick
    this.#onLong = onLong
    this.#onTimeout = onTimeout
  }

  add(attempt: Attempt<D>): void {
    if (this.#cancel === undefined) this.#start()
    attempt.startedTick = this.#tick
    attempt.before = this.#last
    if (this.#last === undefined) this.#first = attempt
    else this.#last.behind = attempt
    this.#last = attempt
  }

  remove(attempt: Attempt<D>): void {
    if (attempt.before === undefined) this.#first = attempt.behind
    else attempt.before.behind = attempt.behind
    if (attempt.behind === undefined) this.#last = attempt.before
    else attempt.behind.before = attempt.before
    // A handler that never ends may keep its own attempt in memory, but not all later ones.
    attempt.before = undefined
    attempt.behind = undefined
  }

  isLate(attempt: Attempt<D>): boolean {
    return (this.#tick - attempt.startedTick) * this.#tickMs >= this.#timeoutMs * LATE_SHARE
  }

  /** The time of the last tick: at most one tick ago, without a clock call. */
  get tickAt(): number {
    return this.#tickAt
  }

  /** Returns when the attempt began, to a tick. */
  startedAt(attempt: Attempt<D>): number {
    return this.#tickAt - (this.#tick - attempt.startedTick) * this.#tickMs
  }

  /** Returns the timing of an attempt that ended while this many others run. */
  timingOf(attempt: Attempt<D>, others: number): AttemptTiming {
    return { startedAt: this.startedAt(attempt), inFlight: others + 1 }
  }

  all(): readonly Attempt<D>[] {
    const attempts: Attempt<D>[] = []
    for (let one = this.#first; one !== undefined; one = one.behind) attempts.push(one)
    return attempts
  }

  /** Returns whether an attempt of the message runs whose signal is not aborted. */
  isRunning(messageId: string): boolean {
    for (let one = this.#first; one !== undefined; one = one.behind) {
      if (one.delivery.id === messageId) return true
    }
    return false
  }

  /** Returns true one tick after the timeout: an attempt that began just before a tick still gets its full time. */
  #isOverdue({ startedTick }: Attempt<D>): boolean {
    return (this.#tick - startedTick - 1) * this.#tickMs >= this.#timeoutMs
  }

  #start(): void {
    this.#tickAt = this.#clock.now()
    this.#cancel = this.#clock.after(this.#tickMs, () => this.#turn())
  }

  #turn(): void {
    this.#tick += 1
    this.#cancel = undefined
    this.#onTick()
    const long = this.#markLong()
    if (long > 0) this.#onLong(long)
    while (this.#first !== undefined && this.#isOverdue(this.#first)) {
      this.#onTimeout(this.#first, timeoutError(this.#timeoutMs))
    }
    // Another attempt may have started the next tick already. Two timers would make time run twice as fast.
    if (this.#first !== undefined && this.#cancel === undefined) this.#start()
  }

  /** Marks the attempts that have become long, and returns their number. */
  #markLong(): number {
    let count = 0
    for (let one = this.#first; one !== undefined && this.#isLong(one); one = one.behind) {
      if (!one.isLong) count += 1
      one.isLong = true
    }
    return count
  }

  #isLong({ startedTick }: Attempt<D>): boolean {
    return (this.#tick - startedTick) * this.#tickMs > LONG_RUN_MS
  }

  /** Stops the ticks: a remaining timer would keep the process alive. */
  stop(): void {
    this.#cancel?.()
    this.#cancel = undefined
  }
}

function timeoutError(timeoutMs: number): RedriveError {
  return new RedriveError(
    'ATTEMPT_TIMEOUT',
    `The handler ran longer than ${timeoutMs} ms. Pass context.signal to the calls it waits for, or increase "timeout" of the policy.`,
  )
}
