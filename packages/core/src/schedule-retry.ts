import { delayAfter, longestDelayMs, type Random } from './backoff.ts'
import type { RetryAt } from './decision.ts'
import { PUSHBACK_JITTER, PUSHBACK_MAX_MS, UNPROVEN_JITTER } from './defaults.ts'
import type { FailureCycle } from './delivery.ts'
import type { Cause } from './evidence.ts'
import type { Failure } from './failure.ts'
import type { ClassPolicy, Policy, UnprovenPolicy } from './policy.ts'

/** A failure and the data that the time of its retry depends on. */
export interface RetryContext {
  readonly policy: Policy
  readonly failure: Failure
  readonly rule: ClassPolicy
  readonly cause: Cause
  /** The cycle if there are more attempts. */
  readonly cycle: FailureCycle
  readonly now: number
  readonly random: Random
}

/**
 * Schedules the next attempt, not before `earliest`. A wait time that the dependency requests replaces the backoff of an
 * attempt. Other runs wait at least for the backoff: a dependency that always requests one second would use up the
 * runs without proof within seconds.
 */
export function scheduleRetry(context: RetryContext, earliest: number): RetryAt {
  const { failure, cycle, cause, now } = context
  const askedMs = pushbackDelay(context, failure.retryAfterMs ?? 0)
  const replaces = askedMs > 0 && cause === 'message'
  const delayMs = replaces ? askedMs : Math.max(askedMs, backoffDelay(context))
  const dueAt = Math.max(earliest, now + delayMs)
  return {
    kind: 'retryAt',
    reason: earliest > now + delayMs ? 'held_back' : askedMs === delayMs ? 'pushback' : 'backoff',
    dueAt,
    delayMs: dueAt - now,
    cycle: { ...cycle, lastDelayMs: delayMs, remainingMs: 0 },
    failure,
  }
}

/** Returns the requested wait, spread; 0 without one. */
function pushbackDelay({ policy, random }: RetryContext, wantedMs: number): number {
  if (wantedMs <= 0) return 0
  const spreadMs = Math.min(wantedMs, PUSHBACK_MAX_MS) * (1 + PUSHBACK_JITTER * random())
  return Math.max(policy.retry.minDelayMs, Math.ceil(spreadMs))
}

/** Returns the delay that the policy chooses, without a wait time that the dependency requests. */
export function backoffDelay(context: RetryContext): number {
  const { rule, policy, failure, cycle, cause, random } = context
  const drawnMs = delayAfter(rule.backoff, {
    attemptNumber: Math.max(1, cycle.attempts),
    failureClass: failure.class,
    lastDelayMs: cycle.lastDelayMs,
    floorMs: policy.retry.minDelayMs,
    random,
  })
  const longestMs = longestDelayMs(rule.backoff)
  switch (cause) {
    case 'message':
      // After runs without proof the delays do not start again from the shortest one.
      return cycle.unproven.runs === 0
        ? drawnMs
        : Math.max(drawnMs, Math.min(cycle.lastDelayMs, longestMs))
    case 'dependency': {
      // The count does not change, so the delay grows from the last one, up to the maximum of the backoff.
      const grownMs = Math.round(cycle.lastDelayMs * (1 + 2 * random()))
      return Math.max(drawnMs, Math.min(grownMs, longestMs))
    }
    case 'unproven': {
      // Without a breaker, only the delays limit the runs in an outage: they do not start again from the shortest one.
      const lastMs = policy.breaker === undefined ? Math.min(cycle.lastDelayMs, longestMs) : 0
      return Math.max(drawnMs, lastMs, unprovenDelay(policy.retry.unproven, cycle, random))
    }
  }
}

/**
 * Returns the part of the last delay that only the dependency requested. A delay that is longer than any of the policy was
 * requested, and replaces the growing delay of a run without proof. Otherwise one `Retry-After` of an hour would use up
 * the time without proof. A shorter one counts, so that requests for short waits do not extend that time.
 */
export function requestedMs(
  { policy, failure }: Pick<RetryContext, 'policy' | 'failure'>,
  cycle: FailureCycle,
): number {
  const { retry } = policy
  const backoffMs = longestDelayMs(retry.classes[failure.class].backoff)
  const growingMs = unprovenDelay(retry.unproven, cycle, () => 1)
  const isRequested = cycle.lastDelayMs > Math.max(retry.minDelayMs, backoffMs, growingMs)
  return isRequested ? cycle.lastDelayMs - growingMs : 0
}

/**
 * Returns a delay that doubles with each run until half of the runs are used, and then stays the same, so
 * that time and runs end together. The last delay ends just after the time limit. Past it, the delay stays
 * the same: a message with a long backoff has runs left, and they should not follow each other immediately.
 */
export function unprovenDelay(
  limit: UnprovenPolicy | undefined,
  { unproven }: Pick<FailureCycle, 'unproven'>,
  random: Random,
): number {
  if (limit === undefined) return 0
  const half = limit.runs / 2
  const share = 2 ** Math.min(0, unproven.runs - half) / half
  const delayMs = limit.maxAgeMs * share * (1 + UNPROVEN_JITTER * random())
  if (unproven.waitedMs >= limit.maxAgeMs) return Math.round(delayMs)
  return Math.round(Math.min(delayMs, limit.maxAgeMs * PAST_LIMIT - unproven.waitedMs))
}

/** 1 %: an outage of exactly the time limit has ended at the last run. */
const PAST_LIMIT = 1.01
