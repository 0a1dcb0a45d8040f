import type { Random } from './backoff.ts'
import {
  type BreakerInput,
  type BreakerState,
  breakerPhase,
  CLOSED,
  nextBreaker,
} from './breaker.ts'
import { type BudgetState, depositSuccesses, startBudget } from './budget.ts'
import type { CoreEvent } from './events.ts'
import type { Failure } from './failure.ts'
import { type FloodState, NO_FLOOD } from './flood.ts'
import {
  failedLimit,
  type LimitState,
  lateLimit,
  quickLimit,
  restartLimit,
  startLimit,
} from './limit.ts'
import { NO_OUTAGE, type OutageState, outageFailed, outageHandled } from './outage.ts'
import type { Policy } from './policy.ts'

/**
 * The state of a consumer between messages: small, plain and serialisable. One per dependency;
 * consumers that name the same dependency share it. A guard that the policy turns off keeps its
 * initial value.
 */
export interface Guards {
  readonly breaker: BreakerState
  readonly outage: OutageState
  readonly adaptiveConcurrency: LimitState
  readonly retryBudget: BudgetState
  readonly flood: FloodState
}

export function startGuards(policy: Policy, now: number): Guards {
  return {
    breaker: CLOSED,
    outage: NO_OUTAGE,
    adaptiveConcurrency: startLimit(policy.adaptiveConcurrency ?? fullLimit(policy)),
    retryBudget:
      policy.retryBudget === undefined ? NO_BUDGET : startBudget(policy.retryBudget, now),
    flood: NO_FLOOD,
  }
}

const NO_BUDGET: BudgetState = Object.freeze({
  tokens: 0,
  rateTokens: 0,
  at: 0,
  stageAt: 0,
  staged: 0,
})

const fullLimit = ({ concurrency }: Policy) => ({
  start: concurrency,
  min: concurrency,
  max: concurrency,
  decrease: 1,
})

/** Returns how many attempts may run now: none while open, the probes while half-open, else the adaptive limit. */
export function attemptsAllowed(policy: Policy, guards: Guards, now: number): number {
  switch (breakerPhase(guards.breaker, now)) {
    case 'closed':
      return guards.adaptiveConcurrency.limit
    case 'halfOpen':
      return Math.min(policy.breaker?.probes ?? 1, guards.adaptiveConcurrency.limit)
    default:
      return 0
  }
}

/** Returns when consumption may resume: undefined when it may now, or when an operator must restore it (isolated). */
export function pausedUntil({ breaker }: Guards, now: number): number | undefined {
  return breaker.phase === 'open' && now < breaker.until ? breaker.until : undefined
}

/** The successes since the last call. The loop counts them and records them together. */
export interface SuccessBatch {
  readonly count: number
  /** End time of the last of them; rounded down when uncertain. */
  readonly at: number
  /** True when the limit prevented further attempts. */
  readonly saturated: boolean
  /** True when this success took more than its share of the timeout. */
  readonly late: boolean
  readonly startedAt: number
  readonly inFlight: number
}

export interface GuardUpdate {
  readonly guards: Guards
  readonly events: readonly CoreEvent[]
}

export function recordSuccesses(
  policy: Policy,
  guards: Guards,
  seen: SuccessBatch,
  { source, now, random }: { source: string; now: number; random: Random },
): GuardUpdate {
  const breaker = updateBreaker(policy, guards, { kind: 'handled', count: seen.count }, now, random)
  const next: Guards = {
    breaker,
    outage:
      policy.outage === undefined
        ? guards.outage
        : outageHandled(policy.outage, guards.outage, seen, now),
    adaptiveConcurrency: limitAfterHandled(policy, guards, seen, now),
    retryBudget:
      policy.retryBudget === undefined
        ? guards.retryBudget
        : depositSuccesses(policy.retryBudget, guards.retryBudget, seen.count),
    flood: guards.flood,
  }
  return { guards: next, events: changes(guards, next, source, now) }
}

function limitAfterHandled(
  policy: Policy,
  guards: Guards,
  seen: SuccessBatch,
  now: number,
): LimitState {
  if (policy.adaptiveConcurrency === undefined) return guards.adaptiveConcurrency
  if (seen.late)
    return lateLimit(policy.adaptiveConcurrency, guards.adaptiveConcurrency, { ...seen, now })
  // The common case allocates no memory.
  if (guards.adaptiveConcurrency.lateSince === undefined && !seen.saturated)
    return guards.adaptiveConcurrency
  return quickLimit(policy.adaptiveConcurrency, guards.adaptiveConcurrency, seen)
}

/** A failed attempt, as the guards see it. */
export interface FailureSeen {
  readonly failure: Failure
  readonly messageId: string
  /**
   * The message had failed before, and others passed while it waited for this attempt. Its failure then
   * shows nothing about the dependency.
   */
  readonly othersPassed?: boolean
  /** The handler reported that the message needs no work, so it did not call the dependency. */
  readonly isSkipped?: boolean | undefined
  readonly startedAt: number
  readonly inFlight: number
}

/** Records what a failure shows about the dependency, before the message is decided. */
export function recordFailure(
  policy: Policy,
  guards: Guards,
  failed: FailureSeen,
  { source, now, random }: { source: string; now: number; random: Random },
): GuardUpdate {
  if (failed.isSkipped === true) return { guards, events: [] }
  const input = aboutDependency(failed.failure, failed.messageId)
  if (failed.othersPassed === true && input?.kind !== 'handled') return { guards, events: [] }
  const breaker =
    input === undefined ? guards.breaker : updateBreaker(policy, guards, input, now, random)
  const next: Guards = {
    ...guards,
    breaker,
    outage: outageAfter(policy, guards.outage, input, now),
    adaptiveConcurrency: limitAfterFailure(policy, guards, breaker, { ...failed, now }),
  }
  return { guards: next, events: changes(guards, next, source, now) }
}

/**
 * | class       | what it shows about the dependency                             |
 * |-------------|----------------------------------------------------------------|
 * | transient   | unreachable, slow or busy                                      |
 * | unknown     | perhaps the dependency, perhaps this message                   |
 * | integration | it responded, so it is healthy                                 |
 * | business    | nothing: the rule is often checked before the first call       |
 * | schema      | nothing: the dependency was not called                         |
 */
function aboutDependency(failure: Failure, messageId: string): BreakerInput | undefined {
  switch (failure.class) {
    case 'transient':
      return { kind: 'unreachable', messageId, retryAfterMs: failure.retryAfterMs ?? 0 }
    case 'unknown':
      return { kind: 'unexplained', messageId }
    case 'integration':
      return { kind: 'handled', count: 1 }
    case 'business':
    case 'schema':
      return undefined
  }
}

function outageAfter(
  { outage }: Policy,
  state: OutageState,
  input: BreakerInput | undefined,
  now: number,
): OutageState {
  if (outage === undefined) return state
  switch (input?.kind) {
    case 'handled':
      return outageHandled(outage, state, { count: 1, at: now }, now)
    case 'unreachable':
    case 'unexplained':
      return outageFailed(outage, state, input.messageId, now)
    case undefined:
      return state
  }
}

function limitAfterFailure(
  policy: Policy,
  guards: Guards,
  breaker: BreakerState,
  failed: { failure: Failure; startedAt: number; inFlight: number; now: number },
): LimitState {
  if (policy.adaptiveConcurrency === undefined) return guards.adaptiveConcurrency
  if (breaker.phase === 'open' && guards.breaker.phase === 'closed') {
    return restartLimit(policy.adaptiveConcurrency, guards.adaptiveConcurrency, failed.now)
  }
  // Only a problem of the dependency is a reason to send it less.
  return failed.failure.class === 'transient' || failed.failure.timedOut
    ? failedLimit(policy.adaptiveConcurrency, guards.adaptiveConcurrency, failed)
    : guards.adaptiveConcurrency
}

function updateBreaker(
  policy: Policy,
  guards: Guards,
  input: BreakerInput,
  now: number,
  random: Random,
): BreakerState {
  return policy.breaker === undefined
    ? guards.breaker
    : nextBreaker(policy.breaker, guards.breaker, input, now, random)
}

function changes(before: Guards, after: Guards, source: string, now: number): CoreEvent[] {
  const events: CoreEvent[] = []
  if (before.breaker !== after.breaker) {
    const from = breakerPhase(before.breaker, now)
    const to = breakerPhase(after.breaker, now)
    const until = after.breaker.phase === 'open' ? after.breaker.until : undefined
    if (from !== to) events.push({ type: 'breaker_changed', at: now, source, from, to, until })
  }
  if (after.adaptiveConcurrency.limit < before.adaptiveConcurrency.limit) {
    const from = before.adaptiveConcurrency.limit
    events.push({
      type: 'limit_shrunk',
      at: now,
      source,
      from,
      to: after.adaptiveConcurrency.limit,
    })
  }
  return events
}
