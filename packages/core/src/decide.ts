import { delayAfter, longestDelayMs, type Random } from './backoff.ts'
import { breakerPhase } from './breaker.ts'
import { takeRetry } from './budget.ts'
import { type Decision, type DeadLetter, type Pause, type RetryAt, SETTLE } from './decision.ts'
import { PUSHBACK_JITTER, PUSHBACK_MAX_MS } from './defaults.ts'
import type { AttemptRecord, Delivery, FailureCycle } from './delivery.ts'
import type { CoreEvent } from './events.ts'
import type { Failure } from './failure.ts'
import { isAlwaysKept, isKept } from './filter.ts'
import { takeDeadLetter } from './flood.ts'
import {
  type Guards,
  type Handled,
  isDependencyToBlame,
  learnFailure,
  learnHandled,
} from './guards.ts'
import type { ClassPolicy, Policy } from './policy.ts'
import { hasServedOthers } from './outage.ts'
import { isPoison } from './poison.ts'

/** What an attempt ended in. */
export type Outcome =
  | ({ readonly kind: 'success' } & Handled)
  | {
      readonly kind: 'failure'
      readonly failure: Failure
      readonly startedAt: number
      /** Attempts running at that moment, this one included. */
      readonly inFlight: number
    }

export interface DecideInput {
  readonly policy: Policy
  readonly delivery: Delivery
  readonly outcome: Outcome
  /** Where the delivery's cycle stands; inline retries move it on while the delivery stays the same. */
  readonly cycle: FailureCycle
  readonly guards: Guards
  readonly now: number
  readonly random: Random
}

export interface DecideResult {
  readonly decision: Decision
  readonly guards: Guards
  readonly events: readonly CoreEvent[]
}

/**
 * What must happen next. Synchronous, total, deterministic; the ladder reads top to bottom:
 * success → terminal class or too old → dependency sick → poison → attempts → budget → retry.
 */
export function decide(input: DecideInput): DecideResult {
  const { policy, outcome, delivery, now } = input
  const { source } = delivery
  if (outcome.kind === 'success') {
    return {
      decision: SETTLE,
      ...learnHandled(policy, input.guards, outcome, { ...input, source }),
    }
  }
  const { failure } = outcome
  const learned = learnFailure(
    policy,
    input.guards,
    { ...outcome, messageId: delivery.id },
    { ...input, source },
  )
  const rule = policy.retry.classes[failure.class]
  const spared =
    rule.action === 'retry' &&
    (isDependencyToBlame(policy, failure, input.guards, learned.guards, now) ||
      lacksProof(policy, failure, input.cycle, learned.guards, now))
  const ended = counted(policy, input.cycle, failure, now)
  const step: Step = {
    ...input,
    failure,
    rule,
    spared,
    cycle: spared ? begun(input.cycle, now) : ended,
    ended,
    guards: learned.guards,
    wasProbe: breakerPhase(input.guards.breaker, now) === 'halfOpen',
  }
  const result = rule.action === 'retry' ? chooseRetry(step) : giveUp(step, 'terminal')
  const isCounted = !spared && result.decision.kind !== 'pause'
  const failed = attemptFailed(input, failure, isCounted)
  return { ...result, events: [failed, ...learned.events, ...result.events] }
}

/**
 * A retry failed in a way that points at the dependency, and the dependency served nobody else while
 * this message waited: nothing proves that the message is to blame. It tries once more and the count
 * stays.
 */
function lacksProof(
  policy: Policy,
  failure: Failure,
  cycle: FailureCycle,
  guards: Guards,
  now: number,
): boolean {
  if (policy.outage === undefined || failure.class !== 'transient') return false
  const isRetry = cycle.attempts > 0
  return isRetry && !hasServedOthers(guards.outage, cycle.lastDelayMs, now)
}

/** The failure on its way down the ladder. */
interface Step {
  readonly policy: Policy
  readonly delivery: Delivery
  readonly failure: Failure
  readonly rule: ClassPolicy
  /** The attempt is not counted. */
  readonly spared: boolean
  /** The cycle if it goes on. */
  readonly cycle: FailureCycle
  /** The cycle if it ends here: this failure is part of its history in any case. */
  readonly ended: FailureCycle
  readonly guards: Guards
  readonly now: number
  readonly random: Random
  readonly wasProbe: boolean
}

function chooseRetry(step: Step): DecideResult {
  const { policy, cycle, failure, rule, now } = step
  if (now - (cycle.firstFailedAt ?? now) > policy.retry.maxAgeMs) return giveUp(step, 'too_old')
  if (step.spared) return waitForDependency(step)
  if (policy.poison !== undefined && isPoison(policy.poison, cycle, failure, now)) {
    return done(step, { kind: 'quarantine', reason: 'same_failure_repeated', failure, cycle })
  }
  if (cycle.attempts >= rule.attempts) return giveUp(step, 'attempts_exhausted')
  return retryWithinBudget(step)
}

/** The attempt is not counted. The consumer stops by itself: the breaker in the guards allows no attempts. */
function waitForDependency(step: Step): DecideResult {
  const { policy, guards, now, failure } = step
  if (guards.breaker.phase === 'closed') return retryWithinBudget(step)
  if (policy.whenOpen === 'deadLetter') return giveUp(step, 'breaker_open')
  const until = guards.breaker.phase === 'open' ? guards.breaker.until : now
  // A probe that failed makes room for another message; otherwise one bad message at the head of
  // the source could be every probe, and the breaker would stay open for good. In lane order it keeps
  // its place and waits longer than the breaker, so that another lane is the next probe.
  if (step.wasProbe) {
    const earliest = policy.order === 'lane' ? until + backoffDelay(step) : until
    return done(step, retry(step, earliest))
  }
  return done(step, { kind: 'pause', reason: 'dependency_sick', until, failure })
}

function retryWithinBudget(step: Step): DecideResult {
  const { policy, guards, now } = step
  if (policy.budget === undefined) return done(step, retry(step, now))
  const answer = takeRetry(policy.budget, guards.budget, now, step.random)
  const paid = { ...step, guards: { ...guards, budget: answer.state } }
  if (answer.granted) return done(paid, retry(step, now))
  const { delivery, failure, ended: cycle } = step
  const exhausted: CoreEvent = {
    type: 'budget_exhausted',
    at: now,
    source: delivery.source,
    deliveryId: delivery.id,
    releaseAt: answer.releaseAt,
  }
  switch (policy.budget.whenOver) {
    case 'delay':
      return done(paid, retry(step, answer.releaseAt), [exhausted])
    case 'deadLetter':
      return giveUp(paid, 'over_budget', [exhausted])
    case 'drop':
      return isAlwaysKept(policy.deadLetter.filter, { delivery, failure })
        ? giveUp(paid, 'over_budget', [exhausted])
        : done(paid, { kind: 'drop', reason: 'over_budget', failure, cycle }, [exhausted])
  }
}

/** The next attempt, not before `earliest`: server pushback wins over our own backoff. */
function retry(step: Step, earliest: number): RetryAt {
  const { failure, cycle, now } = step
  const wanted = failure.retryAfterMs ?? 0
  const delayMs = wanted > 0 ? pushbackDelay(step, wanted) : backoffDelay(step)
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

function pushbackDelay({ policy, random }: Step, wantedMs: number): number {
  const spreadMs = Math.min(wantedMs, PUSHBACK_MAX_MS) * (1 + PUSHBACK_JITTER * random())
  return Math.max(policy.retry.floorMs, Math.ceil(spreadMs))
}

function backoffDelay({ rule, policy, failure, cycle, spared, random }: Step): number {
  const drawnMs = delayAfter(rule.backoff, {
    attemptNumber: Math.max(1, cycle.attempts),
    failureClass: failure.class,
    lastDelayMs: cycle.lastDelayMs,
    floorMs: policy.retry.floorMs,
    random,
  })
  if (!spared) return drawnMs
  // The count stands still, so the delay grows from the last one instead, up to what the backoff allows.
  const grownMs = Math.round(cycle.lastDelayMs * (1 + 2 * random()))
  return Math.max(drawnMs, Math.min(grownMs, longestDelayMs(rule.backoff)))
}

/** Nothing was run: the breaker is open, and the policy says not to wait. */
const BREAKER_OPEN: Failure = Object.freeze({
  class: 'transient',
  signature: 'breaker-open',
  type: 'BreakerOpen',
  code: 'BREAKER_OPEN',
  message: 'the breaker of its dependency was open',
  retryAfterMs: undefined,
  timedOut: false,
  stack: undefined,
})

/** Gives a delivery up without an attempt, for `whenOpen: 'deadLetter'`. */
export function giveUpUnrun({
  policy,
  delivery,
  guards,
  now,
  random,
}: Omit<DecideInput, 'outcome' | 'cycle'>): DecideResult {
  const failure = BREAKER_OPEN
  const cycle = counted(policy, delivery.cycle, failure, now)
  const rule = policy.retry.classes.transient
  const step = { policy, delivery, guards, now, random, failure, rule, cycle, ended: cycle }
  return giveUp({ ...step, spared: false, wasProbe: false }, 'breaker_open')
}

/** No more attempts: keep it as a dead letter, unless the filter says it is not worth keeping or too many alike are. */
function giveUp(
  step: Step,
  reason: DeadLetter['reason'],
  events: readonly CoreEvent[] = [],
): DecideResult {
  const { policy, delivery, failure, ended: cycle, guards, now } = step
  if (!isKept(policy.deadLetter.filter, { delivery, failure })) {
    return done(step, { kind: 'drop', reason: 'filtered', failure, cycle }, events)
  }
  if (policy.flood === undefined)
    return done(step, { kind: 'deadLetter', reason, failure, cycle }, events)
  const answer = takeDeadLetter(policy.flood, guards.flood, failure.signature, now)
  const next = { ...step, guards: { ...guards, flood: answer.state } }
  if (answer.until === undefined)
    return done(next, { kind: 'deadLetter', reason, failure, cycle }, events)
  const pause: Pause = { kind: 'pause', reason: 'flood', until: answer.until, failure }
  const flood: CoreEvent = {
    type: 'flood_detected',
    at: now,
    source: delivery.source,
    signature: failure.signature,
    until: answer.until,
  }
  return done(next, pause, [...events, flood])
}

function done(
  { guards }: Step,
  decision: Decision,
  events: readonly CoreEvent[] = [],
): DecideResult {
  return { decision, guards, events }
}

function begun(cycle: FailureCycle, now: number): FailureCycle {
  return cycle.firstFailedAt === undefined ? { ...cycle, firstFailedAt: now } : cycle
}

function counted(policy: Policy, cycle: FailureCycle, failure: Failure, now: number): FailureCycle {
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
  return { ...begun(cycle, now), attempts, history }
}

function attemptFailed(
  { delivery, cycle, now }: DecideInput,
  failure: Failure,
  isCounted: boolean,
): CoreEvent {
  return {
    type: 'attempt_failed',
    at: now,
    source: delivery.source,
    deliveryId: delivery.id,
    attemptNumber: cycle.attempts + 1,
    class: failure.class,
    signature: failure.signature,
    code: failure.code,
    counted: isCounted,
  }
}
