import { setImmediate } from 'node:timers'
import type { Duration } from '@redrive/core'
import type { Awaitable, Clock } from '@redrive/runtime'
import { millisOf } from './millis.ts'

/** 2: one turn runs every promise continuation, the second those behind a `setImmediate` of the code under test. */
const TURNS = 2
/** 100,000 timers at one moment are a loop that waits for nothing, not a busy test. */
const MOST_AT_ONE_MOMENT = 100_000
/** A round moment, so that times in a failing test are easy to read: 2025-01-01T00:00:00Z. */
const START = 1_735_689_600_000

/** When a fake clock begins. */
export interface FakeClockOptions {
  /** Epoch ms; default 2025-01-01T00:00:00Z. */
  readonly now?: number
}

interface Timer {
  readonly at: number
  readonly callback: () => void
}

/**
 * Time that moves only when the test says so. Timers run in the order they are due, those of the
 * same moment in the order they were set, and between two of them everything that was waiting on
 * promises goes on. So a test never sleeps, and always sees the same thing.
 *
 * ```ts
 * const clock = new FakeClock()
 * const broker = new MemoryBroker({ clock })
 * const consumer = await consume(memory({ broker, queue: 'orders' }), handler, { clock })
 * await clock.advance('30s')
 * ```
 */
export class FakeClock implements Clock {
  /** In the order they were set, which is the order of those with the same moment. */
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

  /** Timers that wait: 0 means that nothing will happen any more by itself. */
  get pending(): number {
    return this.#timers.size
  }

  /** Moves time on and runs what becomes due. Rejects with what a timer's callback throws. */
  async advance(by: Duration): Promise<void> {
    const until = this.#now + millisOf(by)
    await this.#move(async () => {
      while (await this.#step(until));
      this.#now = until
    })
  }

  /**
   * Moves time on from timer to timer until the predicate holds. Rejects when nothing is left to
   * wait for, or when it does not hold `within` that time (default an hour).
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
            ? 'Nothing is left to wait for: no timer is set, and it still does not hold.'
            : `It did not hold within ${millisOf(within)} ms.`,
        )
      }
    })
  }

  /** Lets everything go on that waits on promises only. Time stands still. */
  async settle(): Promise<void> {
    for (let turn = 0; turn < TURNS; turn++) await new Promise((resolve) => setImmediate(resolve))
  }

  /** Runs the next timer due by then. False when there is none. */
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
    if (this.#atThisMoment <= MOST_AT_ONE_MOMENT) return
    throw new Error(`More than ${MOST_AT_ONE_MOMENT} timers ran at one moment: is it a loop?`)
  }

  async #move(body: () => Promise<void>): Promise<void> {
    if (this.#isMoving) {
      throw new Error('The clock is already being moved: await advance() before the next one.')
    }
    this.#isMoving = true
    try {
      await body()
    } finally {
      this.#isMoving = false
    }
  }
}
