import { setImmediate } from 'node:timers'
import type { Duration } from '@redrive/core'
import type { Awaitable, Clock } from '@redrive/runtime'
import { millisOf } from './millis.ts'

/** 2: the first turn runs every promise continuation, the second those after a `setImmediate` of the code under test. */
const TURNS = 2
/** 100,000 timers at the same time are an endless loop, not a busy test. */
const MAX_TIMERS_AT_A_TIME = 100_000
/** A round time, so that times in a failing test are easy to read: 2025-01-01T00:00:00Z. */
const START = 1_735_689_600_000

/** The start time of a fake clock. */
export interface FakeClockOptions {
  /** Epoch ms; default 2025-01-01T00:00:00Z. */
  readonly now?: number
}

interface Timer {
  readonly at: number
  readonly callback: () => void
}

/**
 * A clock that moves only when the test moves it. Timers run in the order they are due, and timers of
 * the same time in the order they were set. Between two timers all pending promises continue.
 * A test therefore never sleeps, and always gives the same result.
 *
 * ```ts
 * const clock = new FakeClock()
 * const broker = new MemoryBroker({ clock })
 * const consumer = await consume(memory({ broker, queue: 'orders' }), handler, { clock })
 * await clock.advance('30s')
 * ```
 */
export class FakeClock implements Clock {
  /** Timers in the order they were set, which is also the order of timers with the same time. */
  readonly #timers = new Set<Timer>()
  #now: number
  #isMoving = false

  constructor({ now = START }: FakeClockOptions = {}) {
    this.#now = now
  }

  now(): number {
    return this.#now
  }

  after(delayMs: number, callback: () => void): () => void {
    // Whole milliseconds, rounded up: `now` has no fractions, and a timer must never be early.
    const timer = { at: this.#now + Math.max(0, Math.ceil(delayMs)), callback }
    this.#timers.add(timer)
    return () => void this.#timers.delete(timer)
  }

  /** Number of waiting timers: 0 means that nothing more will happen. */
  get pending(): number {
    return this.#timers.size
  }

  /** Moves time forward and runs the timers that become due. Rejects when a callback throws. */
  async advance(by: Duration): Promise<void> {
    const until = this.#now + millisOf(by)
    await this.#move(async () => {
      while (await this.#step(until));
      this.#now = until
    })
  }

  /**
   * Moves time forward from timer to timer until the predicate is true. Rejects when no timer is left, or
   * when the predicate is not true `within` that time (default an hour).
   */
  async runUntil(
    isTrue: () => Awaitable<boolean>,
    { within = '1h' }: { readonly within?: Duration } = {},
  ): Promise<void> {
    const until = this.#now + millisOf(within)
    await this.#move(async () => {
      while (!(await isTrue())) {
        if (await this.#step(until)) continue
        // The last turns may have made it true.
        if (await isTrue()) return
        throw new Error(
          this.pending === 0
            ? 'No timer is left, and the condition is still not true.'
            : `The condition was not true within ${millisOf(within)} ms.`,
        )
      }
    })
  }

  /** Lets all pending promises continue. Time does not move. */
  async settle(): Promise<void> {
    for (let turn = 0; turn < TURNS; turn++) await new Promise((resolve) => setImmediate(resolve))
  }

  /** Runs the next timer due by then. Returns false when there is none. */
  async #step(until: number): Promise<boolean> {
    await this.settle()
    const timer = this.#next()
    if (timer === undefined || timer.at > until) return false
    this.#countMoment(timer.at)
    this.#timers.delete(timer)
    this.#now = timer.at
    timer.callback()
    await this.settle()
    return true
  }

  #next(): Timer | undefined {
    let first: Timer | undefined
    for (const timer of this.#timers) {
      if (first === undefined || timer.at < first.at) first = timer
    }
    return first
  }

  #atThisMoment = 0

  #countMoment(at: number): void {
    this.#atThisMoment = at === this.#now ? this.#atThisMoment + 1 : 1
    if (this.#atThisMoment <= MAX_TIMERS_AT_A_TIME) return
    throw new Error(
      `More than ${MAX_TIMERS_AT_A_TIME} timers ran at the same time. Check for an endless loop.`,
    )
  }

  async #move(body: () => Promise<void>): Promise<void> {
    if (this.#isMoving) {
      throw new Error('The clock is already moving. Await advance() before the next call.')
    }
    this.#isMoving = true
    try {
      await body()
    } finally {
      this.#isMoving = false
    }
  }
}
