import { type RateState, startRate, takeOne } from '@redrive/core/internal'
import { publish } from '../events.ts'
import type { OutboundEvent } from '../ports/sink.ts'
import type { ResolvedEmitter } from './options.ts'

type RateLimitDeps = Pick<ResolvedEmitter, 'rate' | 'isBypassed' | 'clock'>

/** The rate limit of an emitter, and the number of events over it. */
export class RateLimit {
  readonly #options: RateLimitDeps
  #state: RateState | undefined
  limited = 0

  constructor(options: RateLimitDeps) {
    const { rate, clock } = options
    this.#options = options
    this.#state = rate === undefined ? undefined : startRate(rate, clock.now())
  }

  /** Counts the event against the rate. Returns true when it is over it. */
  isOver(event: OutboundEvent): boolean {
    const { rate, clock } = this.#options
    if (rate === undefined || this.#state === undefined || this.#isBypassed(event)) return false
    const { state, granted } = takeOne(rate, this.#state, clock.now())
    this.#state = state
    if (!granted) this.limited += 1
    return !granted
  }

  /** Returns whether the rate limit is bypassed. A function that throws proves nothing, so the event is limited. */
  #isBypassed(event: OutboundEvent): boolean {
    const { isBypassed, clock } = this.#options
    try {
      return isBypassed(event)
    } catch (error) {
      const where = 'rateLimit.bypass'
      publish({ type: 'user_code_failed', at: clock.now(), source: event.type, where, error })
      return false
    }
  }
}
