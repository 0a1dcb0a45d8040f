import type { Random } from './backoff.ts'
import { breakerPhase } from './breaker.ts'
import { takeRetry } from './budget.ts'
import { countRun } from './cycle.ts'
import { type Decision, type DeadLetter, SETTLE } from './decision.ts'
import { UNPROVEN_MAX_AGE_MS, UNPROVEN_RUNS } from './defaults.ts'
import type { Delivery, FailureCycle } from './delivery.ts'
import type { CoreEvent } from './events.ts'
import { type Cause, findCause, waitedMs } from './evidence.ts'
import type { Failure } from './failure.ts'
import { isAlwaysKept, isKept } from './filter.ts'
import { takeDeadLetter } from './flood.ts'
import { type Guards, type SuccessBatch, recordFailure, recordSuccesses } from './guards.ts'
import { hasServedOthers } from './outage.ts'
import type { ClassPolicy, Policy, UnprovenPolicy } from './policy.ts'
import { isPoison } from './poison.ts'
import { BREAKER_OPEN, STILL_RUNNING } from './unattempted.ts'
import { backoffDelay, type RetryContext, scheduleRetry } from './schedule-retry.ts'

/** The result of an attempt. */
export type Outcome =
  | ({ readonly kind: 'success' } & SuccessBatch)
  | {
      readonly kind: 'failure'
      readonly failure: Failure
      readonly startedAt: number
      /** Attempts running at that time, including this one. */
      readonly inFlight: number
      /** W3C `traceparent` of the span of the attempt; undefined without tracing. */
      readonly trace?: string | undefined
      /** The handler reported that the message needs no work. The failure then shows nothing about the dependency. */
      readonly isSkipped?: boolean | undefined
    }

export interface DecideInput {
  readonly policy: Policy
  readonly delivery: Delivery
  readonly outcome: Outcome
  /** The current cycle. Inline retries advance it while the delivery stays the same. */
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
 * Decides what happens next. Synchronous, total and deterministic. The checks run in this order:
 * success → terminal class or too old → dependency unhealthy → cause unproven → poison → attempts → budget
 * → retry.
 */
export function decide(input: DecideInput): DecideResult {
  const { policy, outcome, delivery, now } = input
  const { source } = delivery
  if (outcome.kind === 'success') {
    return {
      decision: SETTLE,
      ...recordSuccesses(policy, input.guards, outcome, { ...input, source }),
    }
  }
  const { failure, startedAt, trace } = outcome
  const waited = waitedMs(input.cycle, startedAt, now)
  const othersPassed = input.cycle.runs > 0 && hasServedOthers(input.guards.outage, waited, now)
  const update = recordFailure(
    policy,
    input.guards,
    { ...outcome, messageId: delivery.id, othersPassed },
    { ...input, source },
  )
  const rule = policy.retry.classes[failure.class]
  const cause =
    rule.action === 'retry'
      ? findCause({
          ...{ policy, failure, cycle: input.cycle, waitedMs: waited, now },
          ...{ before: input.guards, after: update.guards },
        })
      : 'message'
  const sinceUnproven = input.cycle.unproven.waitedMs + waited
  const run = {
    ...{ policy, failure, now, waitedMs: waited, trace },
    othersPassed: hasServedOthers(input.guards.outage, sinceUnproven, now),
  }
  const context: FailureContext = {
    ...input,
    failure,
    rule,
    cause,
    cycle: countRun(input.cycle, run, cause),
    guards: update.guards,
    wasProbe: breakerPhase(input.guards.breaker, now) === 'halfOpen',
  }
  const result = rule.action === 'retry' ? chooseRetry(context) : giveUp(context, 'terminal')
  const failed = attemptFailed(input, failure, cause === 'message', result.decision)
  return { ...result, events: [failed, ...update.events, ...result.events] }
}

/** A failure and the data that the checks of `decide` need. */
interface FailureContext extends RetryContext {
  readonly delivery: Delivery
  readonly guards: Guards
  readonly wasProbe: boolean
}

function chooseRetry(context: FailureContext): DecideResult {
  const { policy, cycle, failure, rule, now } = context
  if (now - (cycle.firstFailedAt ?? now) > policy.retry.maxAgeMs) return giveUp(context, 'too_old')
  if (context.cause === 'dependency') return waitForDependency(context)
  if (context.cause === 'unproven') return waitForProof(context)
  if (policy.poison !== undefined && isPoison(policy.poison, cycle, failure, now)) {
    return done(context, { kind: 'quarantine', reason: 'same_failure_repeated', failure, cycle })
  }
  if (cycle.attempts >= rule.attempts) return giveUp(context, 'attempts_exhausted')
  return retryWithinBudget(context)
}

/** Tries again, with growing delays, until the limits of `retry.unproven`. */
function waitForProof(context: FailureContext): DecideResult {
  const { policy, cycle, rule, guards } = context
  if (isUnprovenForTooLong(policy.retry.unproven, cycle, rule)) return giveUp(context, 'unproven')
  const { breaker } = guards
  return breaker.phase === 'open'
    ? retryAfterBreaker(context, breaker.until)
    : retryWithinBudget(context)
}

/** Returns true at the limits, but not before the message had its attempts: its backoff may be long. */
function isUnprovenForTooLong(
  limit: UnprovenPolicy | undefined,
  { attempts, unproven }: FailureCycle,
  rule: ClassPolicy,
): boolean {
  if (limit === undefined || attempts + unproven.runs < rule.attempts) return false
  return unproven.runs >= limit.runs || unproven.waitedMs >= limit.maxAgeMs
}

/** Waits without counting the attempt. The consumer pauses, because the open breaker allows no attempts. */
function waitForDependency(context: FailureContext): DecideResult {
  const { policy, guards, now, failure } = context
  if (guards.breaker.phase === 'closed') return retryWithinBudget(context)
  if (policy.onBreakerOpen === 'deadLetter') return giveUp(context, 'breaker_open')
  const until = guards.breaker.phase === 'open' ? guards.breaker.until : now
  // In lane order the message stays here and keeps its failures. A return would discard them.
  const stays = context.wasProbe || policy.order === 'lane'
  if (stays) return retryAfterBreaker(context, until)
  return done(context, { kind: 'pause', reason: 'dependency_unhealthy', until, failure })
}

/**
 * Makes room for another message after a failed probe. Otherwise one bad message at the head of the source
 * could be every probe, and the breaker would stay open forever. In lane order the message keeps its
 * position and waits longer than the breaker, so that the next probe comes from another lane.
 */
function retryAfterBreaker(context: FailureContext, until: number): DecideResult {
  const earliest = context.policy.order === 'lane' ? until + backoffDelay(context) : until
  return done(context, scheduleRetry(context, earliest))
}

function retryWithinBudget(context: FailureContext): DecideResult {
  const { policy, guards, now } = context
  if (policy.retryBudget === undefined) return done(context, scheduleRetry(context, now))
  const result = takeRetry(policy.retryBudget, guards.retryBudget, now, context.random)
  const afterBudget = { ...context, guards: { ...guards, retryBudget: result.state } }
  if (result.granted) return done(afterBudget, scheduleRetry(context, now))
  const { delivery, failure, cycle } = context
  const exhausted: CoreEvent = {
    type: 'budget_exhausted',
    at: now,
    source: delivery.source,
    deliveryId: delivery.id,
    releaseAt: result.releaseAt,
  }
  switch (policy.retryBudget.onExceeded) {
    case 'delay':
      return done(afterBudget, scheduleRetry(context, result.releaseAt), [exhausted])
    case 'deadLetter':
      return giveUp(afterBudget, 'over_budget', [exhausted])
    case 'drop':
      return isAlwaysKept(policy.deadLetter.filter, { delivery, failure })
        ? giveUp(afterBudget, 'over_budget', [exhausted])
        : done(afterBudget, { kind: 'drop', reason: 'over_budget', failure, cycle }, [exhausted])
  }
}

/**
 * Decides about a delivery whose message still runs in this process, long after its timeout. It does not run
 * twice at the same time. Waiting for the earlier run proves nothing, so it never counts as an attempt. `retry.unproven`
 * limits it, by its defaults when it is off.
 */
export function waitForEarlierRun({
  policy: given,
  delivery,
  cycle: before,
  guards,
  now,
  random,
}: Omit<DecideInput, 'outcome'>): DecideResult {
  const failure = STILL_RUNNING
  const cause: Cause = 'unproven'
  const policy = withUnprovenLimit(given)
  const run = { policy, failure, now, waitedMs: before.lastDelayMs, hasRun: false }
  const cycle = countRun(before, run, cause)
  const rule = policy.retry.classes.transient
  const context = { policy, delivery, guards, now, random, failure, rule, cycle, cause }
  return chooseRetry({ ...context, wasProbe: false })
}

const UNPROVEN_DEFAULT: UnprovenPolicy = { maxAgeMs: UNPROVEN_MAX_AGE_MS, runs: UNPROVEN_RUNS }

function withUnprovenLimit(policy: Policy): Policy {
  const { unproven = UNPROVEN_DEFAULT } = policy.retry
  return { ...policy, retry: { ...policy.retry, unproven } }
}

/** Gives up a delivery without an attempt, for `onBreakerOpen: 'deadLetter'`. */
export function deadLetterWithoutAttempt({
  policy,
  delivery,
  cycle: before,
  guards,
  now,
  random,
}: Omit<DecideInput, 'outcome'>): DecideResult {
  const failure = BREAKER_OPEN
  const cause: Cause = 'dependency'
  const run = { policy, failure, now, waitedMs: before.lastDelayMs, hasRun: false }
  const cycle = countRun(before, run, cause)
  const rule = policy.retry.classes.transient
  const context = { policy, delivery, guards, now, random, failure, rule, cycle, cause }
  return giveUp({ ...context, wasProbe: false }, 'breaker_open')
}

/** Ends the attempts and keeps a dead letter, unless the filter drops it. It is written later when too many similar ones exist. */
function giveUp(
  context: FailureContext,
  reason: DeadLetter['reason'],
  events: readonly CoreEvent[] = [],
): DecideResult {
  const { policy, delivery, failure, cycle, guards, now } = context
  if (!isKept(policy.deadLetter.filter, { delivery, failure })) {
    return done(context, { kind: 'drop', reason: 'filtered', failure, cycle }, events)
  }
  const decision: DeadLetter = { kind: 'deadLetter', reason, failure, cycle }
  if (policy.flood === undefined) return done(context, decision, events)
  const { state, notBefore, begins } = takeDeadLetter(
    policy.flood,
    guards.flood,
    failure.signature,
    now,
  )
  const next = { ...context, guards: { ...guards, flood: state } }
  if (notBefore === undefined) return done(next, decision, events)
  const { source } = delivery
  const { signature } = failure
  const flood: CoreEvent = { type: 'flood_detected', at: now, source, signature, until: notBefore }
  const all = begins ? [...events, flood] : events
  // In lane order a dead letter that waits would block the good messages behind it.
  return done(next, policy.order === 'lane' ? decision : { ...decision, notBefore }, all)
}

function done(
  { guards }: FailureContext,
  decision: Decision,
  events: readonly CoreEvent[] = [],
): DecideResult {
  return { decision, guards, events }
}

function attemptFailed(
  { delivery, cycle, now }: DecideInput,
  failure: Failure,
  isCounted: boolean,
  decision: Decision,
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
    eventType: delivery.type,
    errorType: failure.type,
    message: failure.message,
    runs: cycle.runs + 1,
    firstFailedAt: cycle.firstFailedAt ?? now,
    retryAt: decision.kind === 'retryAt' ? decision.dueAt : undefined,
  }
}
