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
  type LimitState,
  lateLimit,
  quickLimit,
  restartLimit,
  shrinkLimit,
  startLimit,
} from './limit.ts'
import {
  isSick,
  NO_OUTAGE,
  type OutageState,
  outageHandled,
  outageUnexplained,
  outageUnreachable,
} from './outage.ts'
import type { Policy } from './policy.ts'

/**
 * Everything a consumer remembers between messages: small, plain, serialisable. One per dependency;
 * consumers that name the same dependency share it. A guard that the policy switches off keeps its
 * start value.
 */
export interface Guards {
  readonly breaker: BreakerState
  readonly outage: OutageState
  readonly limit: LimitState
  readonly budget: BudgetState
  readonly flood: FloodState
}

export function startGuards(policy: Policy, now: number): Guards {
  return {
    breaker: CLOSED,
    outage: NO_OUTAGE,
    limit: startLimit(policy.limit ?? fullLimit(policy)),
    budget: policy.budget === undefined ? NO_BUDGET : startBudget(policy.budget, now),
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

/** How many attempts may run now: none while open, the probes while half-open, else the adaptive limit. */
export function attemptsAllowed(policy: Policy, guards: Guards, now: number): number {
  switch (breakerPhase(guards.breaker, now)) {
    case 'closed':
      return guards.limit.limit
    case 'halfOpen':
      return Math.min(policy.breaker?.probes ?? 1, guards.limit.limit)
    default:
      return 0
  }
}

/** When consumption may go on: undefined when it may now or only a person can tell (isolated). */
export function pausedUntil({ breaker }: Guards, now: number): number | undefined {
  return breaker.phase === 'open' && now < breaker.until ? breaker.until : undefined
}

/** Successes seen since the last call, in one go: the loop counts, and calls this when it matters. */
export interface Handled {
  readonly count: number
  /** When the last of them ended; rather too early than too late. */
  readonly at: number
  /** The limit was what held more attempts back. */
  readonly saturated: boolean
  /** This success took more than its share of the timeout. */
  readonly late: boolean
  readonly startedAt: number
  readonly inFlight: number
}

export interface Learned {
  readonly guards: Guards
  readonly events: readonly CoreEvent[]
}

export function learnHandled(
  policy: Policy,
  guards: Guards,
  seen: Handled,
  { source, now, random }: { source: string; now: number; random: Random },
): Learned {
  const breaker = knowing(policy, guards, { kind: 'handled', count: seen.count }, now, random)
  const next: Guards = {
    breaker,
    outage:
      policy.outage === undefined
        ? guards.outage
        : outageHandled(policy.outage, guards.outage, seen, now),
    limit: limitAfterHandled(policy, guards, seen, now),
    budget:
      policy.budget === undefined
        ? guards.budget
        : depositSuccesses(policy.budget, guards.budget, seen.count),
    flood: guards.flood,
  }
  return { guards: next, events: changes(guards, next, source, now) }
}

function limitAfterHandled(policy: Policy, guards: Guards, seen: Handled, now: number): LimitState {
  if (policy.limit === undefined) return guards.limit
  if (seen.late) return lateLimit(policy.limit, guards.limit, { ...seen, now })
  // The common case allocates nothing.
  if (guards.limit.isSlow === undefined && !seen.saturated) return guards.limit
  return quickLimit(policy.limit, guards.limit, seen)
}

/** What a failure says about the dependency, before anything is decided about the message. */
export function learnFailure(
  policy: Policy,
  guards: Guards,
  failed: { failure: Failure; messageId: string; startedAt: number; inFlight: number },
  { source, now, random }: { source: string; now: number; random: Random },
): Learned {
  const input = aboutDependency(failed.failure, failed.messageId)
  const breaker = input === undefined ? guards.breaker : knowing(policy, guards, input, now, random)
  const next: Guards = {
    ...guards,
    breaker,
    outage: outageAfter(policy, guards.outage, input, now),
    limit: limitAfterFailure(policy, guards, breaker, { ...failed, now }),
  }
  return { guards: next, events: changes(guards, next, source, now) }
}

/**
 * | class                 | what it says about the dependency                  |
 * |-----------------------|----------------------------------------------------|
 * | transient             | unreachable, slow or busy                          |
 * | unknown               | perhaps the dependency, perhaps this message       |
 * | business, integration | it answered, so it is well                         |
 * | schema                | nothing: the payload never got that far            |
 */
function aboutDependency(failure: Failure, messageId: string): BreakerInput | undefined {
  switch (failure.class) {
    case 'transient':
      return { kind: 'unreachable', retryAfterMs: failure.retryAfterMs ?? 0 }
    case 'unknown':
      return { kind: 'unexplained', messageId }
    case 'business':
    case 'integration':
      return { kind: 'handled', count: 1 }
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
      return outageUnreachable(outage, state, now)
    case 'unexplained':
      return outageUnexplained(outage, state, input.messageId, now)
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
  if (policy.limit === undefined) return guards.limit
  if (breaker.phase === 'open' && guards.breaker.phase === 'closed') {
    return restartLimit(policy.limit, guards.limit, failed.now)
  }
  // Only trouble with the dependency is a reason to send it less.
  return failed.failure.class === 'transient' || failed.failure.timedOut
    ? shrinkLimit(policy.limit, guards.limit, failed)
    : guards.limit
}

function knowing(
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

/**
 * The dependency is known to be in trouble, so this failure does not count against the message. The
 * exception is a probe that told nothing new: then it is the message's own.
 */
export function isDependencyToBlame(
  policy: Policy,
  failure: Failure,
  before: Guards,
  after: Guards,
  now: number,
): boolean {
  // Refused by the rules or unreadable: whatever state the dependency is in, this is the message's.
  if (failure.class !== 'transient' && failure.class !== 'unknown') return false
  if (after.breaker.phase !== 'closed') {
    return breakerPhase(before.breaker, now) !== 'halfOpen' || after.breaker !== before.breaker
  }
  return policy.outage !== undefined && isSick(policy.outage, after.outage, now)
}

function changes(before: Guards, after: Guards, source: string, now: number): CoreEvent[] {
  const events: CoreEvent[] = []
  if (before.breaker !== after.breaker) {
    const from = breakerPhase(before.breaker, now)
    const to = breakerPhase(after.breaker, now)
    const until = after.breaker.phase === 'open' ? after.breaker.until : undefined
    if (from !== to) events.push({ type: 'breaker_changed', at: now, source, from, to, until })
  }
  if (after.limit.limit < before.limit.limit) {
    const from = before.limit.limit
    events.push({ type: 'limit_shrunk', at: now, source, from, to: after.limit.limit })
  }
  return events
}
