import assert from 'node:assert/strict'
import { type Awaitable, type Clock, withTimeout } from '@redrive/runtime'
import { FakeClock } from '../fake-clock.ts'
import { describeError } from './describe-error.ts'

/** 5 ms between two looks: quick beside any broker, slow beside the event loop. */
const POLL_MS = 5
/**
 * 250 ms without a delivery is taken for "none will come". Too short can only overlook a fault, never
 * report one that is not there.
 */
const QUIET_MS = 250
/** 1 s: after a stall of the machine the last look still gets the time to return. */
const LAST_LOOK_MS = 1_000

/** Waiting for signals, up to a deadline: in real time by looking again, in virtual time by moving the clock. */
export class Patience {
  readonly clock: Clock
  readonly #deadlineMs: number

  constructor(clock: Clock, deadlineMs: number) {
    this.clock = clock
    this.#deadlineMs = deadlineMs
  }

  /** Waits until it holds, however long that takes up to the deadline. */
  async until(what: string, isTrue: () => Awaitable<boolean>): Promise<void> {
    const check = new Check(isTrue)
    try {
      if (this.clock instanceof FakeClock) {
        await this.clock.runUntil(check.run, { within: this.#deadlineMs })
      } else {
        await poll(check.run, this.#deadlineMs)
      }
    } catch (cause) {
      const message = check.problem(cause) ?? `${what} (waited ${this.#deadlineMs} ms)`
      const error = new assert.AssertionError({ message, actual: false, expected: true })
      throw Object.assign(error, { cause })
    }
  }

  /** The answer, which must come before the deadline. */
  async within<T>(what: string, answer: Awaitable<T>): Promise<T> {
    let isOver = false
    const over = () => {
      isOver = true
    }
    const settled = Promise.resolve(answer)
    settled.then(over, over)
    await this.until(what, () => isOver)
    return settled
  }

  /** Gives what should not happen the time to happen. */
  quiet(): Promise<void> {
    return this.pass(QUIET_MS)
  }

  /** Lets this time pass, for an effect that depends on time alone. */
  async pass(ms: number): Promise<void> {
    if (this.clock instanceof FakeClock) await this.clock.advance(ms)
    else await new Promise((resolve) => setTimeout(resolve, ms))
  }
}

/** A predicate that remembers whether it threw: then the deadline was not the problem. */
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
  const endsAt = performance.now() + deadlineMs
  // A look that hangs, as at a broker that does not answer, must not outlast the deadline.
  const look = () =>
    withTimeout(isTrue(), Math.max(endsAt - performance.now(), LAST_LOOK_MS), () => {
      throw new Error('The last look has not returned.')
    })
  while (!(await look())) {
    if (performance.now() > endsAt) throw new Error('The deadline has passed.')
    await new Promise((resolve) => setTimeout(resolve, POLL_MS))
  }
}
