import {
  type AttemptRecord,
  type Delivery,
  type FailureCycle,
  LATE_SHARE,
  RedriveError,
} from '@redrive/core'
import type { Clock } from './clock.ts'

/** What a handler is told about the attempt it is. */
export interface AttemptContext<Tx = undefined> {
  /** Fires when the attempt times out or the consumer stops; pass it on to everything that waits. */
  readonly signal: AbortSignal
  /** From 1. Failures while the dependency was sick are not counted. */
  readonly attempt: number
  /** From 1; a replay opens the next one. */
  readonly cycle: number
  /** Earlier failures of this cycle, oldest first. */
  readonly history: readonly AttemptRecord[]
  /** Set when a person replayed this message. */
  readonly replayId: string | undefined
  /** The inbox's transaction; undefined without an inbox. */
  readonly tx: Tx
}

/**
 * One run of the handler. It is also the handler's context and a node in the list of deadlines:
 * one object per message, because this is the hot path.
 */
export class Attempt<D extends Delivery = Delivery> implements AttemptContext<unknown> {
  readonly delivery: D
  readonly failures: FailureCycle
  readonly alone: boolean
  tx: unknown = undefined
  isOver = false
  alreadyHandled = false
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

  /** Made when first asked for: an AbortController costs more than the rest of the loop. */
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
  get cycle(): number {
    return this.failures.number
  }
  get history(): readonly AttemptRecord[] {
    return this.failures.history
  }
  get replayId(): string | undefined {
    return this.delivery.replayId
  }

  abort(reason: unknown): void {
    this.#abortReason = reason
    this.#controller?.abort(reason)
  }
}

/** A timeout is cut into 8 ticks or more: late is told to an eighth, and one timer serves every attempt. */
const TICKS = 8
/** 1 s at most: a tick is also how precisely we remember when the dependency last worked. */
const LONGEST_TICK_MS = 1_000

/**
 * The attempts in flight, oldest first. All share one timeout, so their deadlines are in the order
 * they began, and one coarse timer is enough: an attempt costs no timer and no look at a clock.
 */
export class Deadlines<D extends Delivery> {
  readonly #clock: Clock
  readonly #timeoutMs: number
  readonly #tickMs: number
  readonly #onTick: () => void
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
    onTimeout: (attempt: Attempt<D>, error: RedriveError) => void,
  ) {
    this.#clock = clock
    this.#timeoutMs = timeoutMs
    this.#tickMs = Math.min(timeoutMs / TICKS, LONGEST_TICK_MS)
    this.#onTick = onTick
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
    // A handler that never ends may keep its attempt alive; it must not keep all later ones too.
    attempt.before = undefined
    attempt.behind = undefined
  }

  isLate(attempt: Attempt<D>): boolean {
    return (this.#tick - attempt.startedTick) * this.#tickMs >= this.#timeoutMs * LATE_SHARE
  }

  /** The last tick: a moment at most one tick ago, told without a look at the clock. */
  get tickAt(): number {
    return this.#tickAt
  }

  /** When the attempt began, to a tick. */
  startedAt(attempt: Attempt<D>): number {
    return this.#tickAt - (this.#tick - attempt.startedTick) * this.#tickMs
  }

  all(): readonly Attempt<D>[] {
    const attempts: Attempt<D>[] = []
    for (let one = this.#first; one !== undefined; one = one.behind) attempts.push(one)
    return attempts
  }

  /** One tick more than the timeout: an attempt that began just before a tick still gets it whole. */
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
    while (this.#first !== undefined && this.#isOverdue(this.#first)) {
      this.#onTimeout(this.#first, timeoutError(this.#timeoutMs))
    }
    // Something may have begun meanwhile and started the next tick; two would make time run twice as fast.
    if (this.#first !== undefined && this.#cancel === undefined) this.#start()
  }

  /** No more ticks: a timer left behind would keep the process alive. */
  stop(): void {
    this.#cancel?.()
    this.#cancel = undefined
  }
}

function timeoutError(timeoutMs: number): RedriveError {
  return new RedriveError(
    'ATTEMPT_TIMEOUT',
    `The handler ran longer than ${timeoutMs} ms. Pass context.signal on to what it waits for, or raise the policy's timeout.`,
  )
}
