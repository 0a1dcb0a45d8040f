import type { Failure } from './failure.ts'

/** The failure of a delivery that was not attempted: the breaker is open and the policy does not wait. */
export const BREAKER_OPEN: Failure = Object.freeze({
  class: 'transient',
  signature: 'breaker-open',
  type: 'BreakerOpen',
  code: 'BREAKER_OPEN',
  message: 'the circuit breaker of the dependency was open',
  retryAfterMs: undefined,
  timedOut: false,
  stack: undefined,
})

/** The failure of a delivery that could not run. */
export const STILL_RUNNING: Failure = Object.freeze({
  class: 'transient',
  signature: 'still-running',
  type: 'StillRunning',
  code: 'ATTEMPT_TIMEOUT',
  message: 'an earlier run of the message had not ended long after its timeout',
  retryAfterMs: undefined,
  timedOut: true,
  stack: undefined,
})
