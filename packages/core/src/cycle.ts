import {
  type FailureCycle,
  type FailureRecord,
  NONE_UNPROVEN,
  type UnprovenRuns,
} from './delivery.ts'
import type { Cause } from './evidence.ts'
import type { Failure } from './failure.ts'
import type { Policy } from './policy.ts'
import { requestedMs } from './schedule-retry.ts'

/** A failed run, as `countRun` needs it. */
export interface FailedRun {
  readonly policy: Policy
  readonly failure: Failure
  readonly now: number
  /** The time that the message waited for this run, in ms. */
  readonly waitedMs: number
  /** Others passed since the first run without proof. */
  readonly othersPassed?: boolean
  /** False when the handler did not run: an earlier run had not ended, or the breaker was open. */
  readonly hasRun?: boolean
  /** W3C `traceparent` of the span of the run. */
  readonly trace?: string | undefined
}

/** Returns the cycle after a failed run with this cause. Only a run that the message caused counts as an attempt. */
export function countRun(cycle: FailureCycle, run: FailedRun, cause: Cause): FailureCycle {
  const { policy, now, hasRun = true } = run
  const counted = cause === 'message'
  return {
    ...cycle,
    attempts: cycle.attempts + (counted ? 1 : 0),
    runs: cycle.runs + (hasRun ? 1 : 0),
    unproven: countUnproven(cycle, run, cause),
    firstFailedAt: cycle.firstFailedAt ?? now,
    history: addRecord(cycle.history, recordOf(cycle, run, counted), policy.retry.history),
  }
}

function recordOf(cycle: FailureCycle, run: FailedRun, counted: boolean): FailureRecord {
  const { failure, now, waitedMs, trace } = run
  const before = Math.max(cycle.history.at(-1)?.number ?? 0, cycle.runs, cycle.attempts)
  return {
    number: before + 1,
    at: now,
    waitedMs,
    class: failure.class,
    signature: failure.signature,
    code: failure.code,
    type: failure.type,
    message: failure.message,
    counted,
    ...(trace === undefined ? {} : { trace }),
  }
}

/** Adds a record. When there are too many, omits the oldest uncounted one: counted ones explain the decision and reveal poison. */
function addRecord(
  history: readonly FailureRecord[],
  record: FailureRecord,
  limit: number,
): readonly FailureRecord[] {
  const kept = [...history]
  while (kept.length >= limit) {
    const oldestUncounted = kept.findIndex(({ counted }) => !counted)
    kept.splice(Math.max(0, oldestUncounted), 1)
  }
  kept.push(record)
  return kept
}

/**
 * An attempt adds only its wait, and only to runs without proof: a message that both happens to continues for
 * no longer. An outage starts again at zero, unless others passed since the first of these runs.
 */
function countUnproven(cycle: FailureCycle, run: FailedRun, cause: Cause): UnprovenRuns {
  const { runs, waitedMs } = cycle.unproven
  if (runs === 0 && cause !== 'unproven') return NONE_UNPROVEN
  if (cause === 'dependency' && run.othersPassed !== true) return NONE_UNPROVEN
  return {
    runs: runs + (cause === 'unproven' ? 1 : 0),
    waitedMs: waitedMs + run.waitedMs - requestedMs(run, cycle),
  }
}
