import type { AttemptRecord, FailureCycle } from './delivery.ts'
import type { Failure } from './failure.ts'
import type { Policy } from './policy.ts'

/** Sets the time of the first failure, unless the cycle has one. */
export function startCycle(cycle: FailureCycle, now: number): FailureCycle {
  return cycle.firstFailedAt === undefined ? { ...cycle, firstFailedAt: now } : cycle
}

/** Adds a failed attempt to the count and the history. */
export function countAttempt(
  policy: Policy,
  cycle: FailureCycle,
  failure: Failure,
  now: number,
): FailureCycle {
  const attempts = cycle.attempts + 1
  const record: AttemptRecord = {
    number: attempts,
    at: now,
    class: failure.class,
    signature: failure.signature,
    code: failure.code,
    message: failure.message,
  }
  const history = [...cycle.history, record].slice(-policy.retry.history)
  return { ...startCycle(cycle, now), attempts, history }
}
