import { delayAfter, longestDelayMs, type Random } from './backoff.ts'
import type { RetryAt } from './decision.ts'
import { PUSHBACK_JITTER, PUSHBACK_MAX_MS } from './defaults.ts'
import type { FailureCycle } from './delivery.ts'
import type { Failure } from './failure.ts'
import type { ClassPolicy, Policy } from './policy.ts'

/** A failure and the data that the time of its retry depends on. */
export interface RetryContext {
  readonly policy: Policy
  readonly failure: Failure
  readonly rule: ClassPolicy
  /** The attempt is not counted. */
  readonly isUncounted: boolean
  /** The cycle if there are more attempts. */
  readonly cycle: FailureCycle
  readonly now: number
  readonly random: Random
}

/** Schedules the next attempt, not before `earliest`. A wait time that the dependency requests replaces the backoff. */
export function scheduleRetry(context: RetryContext, earliest: number): RetryAt {
  const { failure, cycle, now } = context
  const wanted = failure.retryAfterMs ?? 0
  const delayMs = wanted > 0 ? pushbackDelay(context, wanted) : backoffDelay(context)
  const dueAt = Math.max(earliest, now + delayMs)
  return {
    kind: 'retryAt',
    reason: earliest > now + delayMs ? 'held_back' : wanted > 0 ? 'pushback' : 'backoff',
    dueAt,
    delayMs: dueAt - now,
    cycle: { ...cycle, lastDelayMs: delayMs, notBefore: undefined },
    failure,
  }
}

function pushbackDelay({ policy, random }: RetryContext, wantedMs: number): number {
  const spreadMs = Math.min(wantedMs, PUSHBACK_MAX_MS) * (1 + PUSHBACK_JITTER * random())
  return Math.max(policy.retry.minDelayMs, Math.ceil(spreadMs))
}

export function backoffDelay({
  rule,
  policy,
  failure,
  cycle,
  isUncounted,
  random,
}: RetryContext): number {
  const drawnMs = delayAfter(rule.backoff, {
    attemptNumber: Math.max(1, cycle.attempts),
    failureClass: failure.class,
    lastDelayMs: cycle.lastDelayMs,
    floorMs: policy.retry.minDelayMs,
    random,
  })
  if (!isUncounted) return drawnMs
  // The count does not change, so the delay grows from the last one, up to the maximum of the backoff.
  const grownMs = Math.round(cycle.lastDelayMs * (1 + 2 * random()))
  return Math.max(drawnMs, Math.min(grownMs, longestDelayMs(rule.backoff)))
}
