import assert from 'node:assert/strict'
import type { Awaitable, Clock } from '@redrive/runtime'
import { withTimeout } from '@redrive/runtime/internal'
import { FakeClock } from '../fake-clock.ts'
import { pollPauseMs } from '../poll-pause.ts'
import { describeError } from './describe-error.ts'

/** 5 ms between the first checks: short compared with any broker, long compared with the event loop. */
const FIRST_PAUSE_MS = 5
/**
 * 250 ms without a delivery means that none will come. A time that is too short can only miss a fault. It
 * never reports a fault that does not exist.
 */
const QUIET_MS = 250
/** 1 s: after a stall of the machine the last check still has time to return. */
const LAST_CHECK_MS = 1_000

/** Waits for conditions up to a deadline: in real time by polling, in virtual time by moving the clock. */
export class Polling {
  readonly clock: Clock
  readonly #deadlineMs: number

  constructor(clock: Clock, deadlineMs: number) {
    this.clock = clock
    this.#deadlineMs = deadlineMs
  }

  /**
   * Waits until the condition is true, at most until the deadline. `missing` states what is missing
   * then.
   */
  async until(
    what: string,
    isTrue: () => Awaitable<boolean>,
    missing?: () => string,
  ): Promise<void> {
    const check = new Check(isTrue)
    try {
      if (this.clock instanceof FakeClock) {
        await this.clock.runUntil(check.run, { within: this.#deadlineMs })
      } else {
        await poll(check.run, this.#deadlineMs)
      }
    } catch (cause) {
      const rest = missing === undefined ? '' : `; missing: ${missing()}`
      const message = check.problem(cause) ?? `${what} (waited ${this.#deadlineMs} ms${rest})`
      const error = new assert.AssertionError({ message, actual: false, expected: true })
      throw Object.assign(error, { cause })
    }
  }

  /** Returns the result, which must come before the deadline. */
  async within<T>(what: string, result: Awaitable<T>): Promise<T> {
    let isOver = false
    const over = () => {
      isOver = true
    }
    const settled = Promise.resolve(result)
    settled.then(over, over)
    await this.until(what, () => isOver)
    return settled
  }

  /** Waits long enough for an unwanted delivery to arrive. */
  quiet(): Promise<void> {
    return this.pass(QUIET_MS)
  }

  /** Waits this time, for an effect that depends only on time. */
  async pass(ms: number): Promise<void> {
    if (this.clock instanceof FakeClock) await this.clock.advance(ms)
    else await new Promise((resolve) => setTimeout(resolve, ms))
  }
}

/** A condition that records whether it threw: then the deadline was not the cause. */
class Check {
  readonly #isTrue: () => Awaitable<boolean>
  #hasThrown = false

  constructor(isTrue: () => Awaitable<boolean>) {
    this.#isTrue = isTrue
  }

  readonly run = async (): Promise<boolean> => {
    try {
      return await this.#isTrue()
    } catch (error) {
      this.#hasThrown = true
      throw error
    }
  }

  problem(cause: unknown): string | undefined {
    return this.#hasThrown ? describeError(cause) : undefined
  }
}

async function poll(isTrue: () => Awaitable<boolean>, deadlineMs: number): Promise<void> {
  const startedAt = performance.now()
  const endsAt = startedAt + deadlineMs
  // A check that hangs, such as on a broker that does not respond, must not exceed the deadline.
  const check = () =>
    withTimeout(isTrue(), Math.max(endsAt - performance.now(), LAST_CHECK_MS), () => {
      throw new Error('The last check did not return.')
    })
  while (!(await check())) {
    const now = performance.now()
    if (now > endsAt) throw new Error('The deadline has passed.')
    const pauseMs = pollPauseMs(now - startedAt, FIRST_PAUSE_MS)
    await new Promise((resolve) => setTimeout(resolve, pauseMs))
  }
}
