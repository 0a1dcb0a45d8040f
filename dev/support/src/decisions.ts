import {
  type FailureRecord,
  type DeadLetter,
  type Drop,
  type FailureClass,
  type FailureCycle,
  FIRST_CYCLE,
  type Pause,
  type Quarantine,
  type RetryAt,
} from '@redrive/core'
import { aFailure } from './samples.ts'

/** 14 November 2023, so that no test depends on the current date. */
const FAILED_AT = 1_700_000_000_000

/** Returns a cycle with this many failed attempts, 1 ms apart. */
export function failedCycle(attempts: number, message = 'it broke'): FailureCycle {
  const attempt = (index: number): FailureRecord => ({
    number: index + 1,
    at: FAILED_AT + index,
    waitedMs: 250 * index,
    class: 'unknown',
    signature: 'v1-unknown',
    code: undefined,
    type: 'Error',
    message,
    counted: true,
  })
  return {
    ...FIRST_CYCLE,
    attempts,
    firstFailedAt: FAILED_AT,
    lastDelayMs: 250,
    history: Array.from({ length: attempts }, (_, index) => attempt(index)),
  }
}

/** Returns the decision to retry after this delay. */
export const retryIn = (delayMs: number, cycle: FailureCycle = failedCycle(1)): RetryAt => ({
  kind: 'retryAt',
  reason: 'backoff',
  dueAt: Date.now() + delayMs,
  delayMs,
  cycle,
  failure: aFailure(),
})

/** Returns the decision to dead-letter after the last attempt. */
export const deadLetter = (cycle: FailureCycle = failedCycle(1)): DeadLetter => ({
  kind: 'deadLetter',
  reason: 'attempts_exhausted',
  failure: aFailure(),
  cycle,
})

/** Returns the decision to quarantine a message that fails in the same way each time. */
export const quarantine = (failureClass: FailureClass = 'unknown'): Quarantine => ({
  kind: 'quarantine',
  reason: 'same_failure_repeated',
  failure: aFailure({ class: failureClass }),
  cycle: failedCycle(1),
})

/** Returns the decision to drop a message that a filter does not keep. */
export const drop = (): Drop => ({
  kind: 'drop',
  reason: 'filtered',
  failure: aFailure(),
  cycle: failedCycle(1),
})

/** The decision to return a message to its source, uncounted. */
export const giveBack: Pause = {
  kind: 'pause',
  reason: 'dependency_unhealthy',
  until: 0,
  failure: undefined,
}
