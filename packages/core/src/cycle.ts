import {
  type AttemptRecord,
  type FailureCycle,
  NONE_UNPROVEN,
  type UnprovenRuns,
} from './delivery.ts'
import type { Cause } from './evidence.ts'
import type { Failure } from './failure.ts'
import type { Policy } from './policy.ts'

/** A failed run, as `countRun` needs it. */
export interface FailedRun {
  readonly policy: Policy
  readonly failure: Failure
  readonly now: number
  /** The time that the message waited for this run, in ms. */
  readonly waitedMs: number
  /** False when the handler did not run, because an earlier run had not ended. */
  readonly hasRun?: boolean
}

/** Returns the cycle after a failed run with this cause. Only a run that the message caused counts as an attempt. */
export function countRun(cycle: FailureCycle, run: FailedRun, cause: Cause): FailureCycle {
  switch (cause) {
    case 'message':
      return countAttempt(cycle, run)
    case 'dependency':
      return { ...addRun(cycle, run), unproven: NONE_UNPROVEN }
    case 'unproven':
      return { ...addRun(cycle, run), unproven: addUnproven(cycle, run) }
  }
}

/** Adds a failed attempt to the count and the history. */
export function countAttempt(cycle: FailureCycle, run: FailedRun): FailureCycle {
  const { policy, failure, now } = run
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
  return { ...addRun(cycle, run), attempts, history, unproven: waitedLonger(cycle, run) }
}

/** Adds the wait to those without proof: a message that both happens to goes on for no longer. */
function waitedLonger({ unproven }: FailureCycle, run: FailedRun): UnprovenRuns {
  if (unproven.runs === 0) return unproven
  return { ...unproven, waitedMs: unproven.waitedMs + run.waitedMs }
}

function addRun(cycle: FailureCycle, { now, hasRun = true }: FailedRun): FailureCycle {
  const runs = cycle.runs + (hasRun ? 1 : 0)
  return { ...cycle, runs, firstFailedAt: cycle.firstFailedAt ?? now }
}

function addUnproven({ unproven }: FailureCycle, run: FailedRun): UnprovenRuns {
  return { runs: unproven.runs + 1, waitedMs: unproven.waitedMs + run.waitedMs }
}
