import {
  attemptsAllowed,
  type BreakerPhase,
  breakerPhase,
  CLOSED,
  type CoreEvent,
  type DecideResult,
  type Delivery,
  decide,
  diagnose,
  type Failure,
  type Guards,
  giveUpUnrun,
  learnFailure,
  learnHandled,
  type Policy,
  pausedUntil,
  type Random,
  startGuards,
  takeRetry,
} from '@redrive/core'
import type { Attempt } from './attempt.ts'
import type { Clock } from './clock.ts'
import type { Dependency } from './dependency.ts'
import { publish } from './events.ts'

export interface KeeperParts {
  readonly source: string
  readonly policy: Policy
  readonly handlerName: string
  readonly dependency: Dependency
  readonly clock: Clock
  readonly random: Random
}

/** What the loop knows about an attempt that is over. */
export interface Ended {
  readonly startedAt: number
  /** Attempts that ran at that moment, this one included. */
  readonly inFlight: number
}

/** What was tried, and how it stood with it before. */
export type Tried = Pick<Attempt, 'delivery' | 'failures'>

/**
 * Keeps the guards: shares breaker and outage window with other consumers of the dependency, asks
 * core, and remembers what it answered. Successes are counted here and told to the guards in bulk,
 * because while nothing fails they change nothing.
 */
export class GuardKeeper {
  readonly #parts: KeeperParts
  #guards: Guards
  #untold = 0
  #lastHandledAt = 0
  #told = 0
  /** Nothing has failed lately: a success needs no thought. */
  isCalm = true

  constructor(parts: KeeperParts) {
    this.#parts = parts
    this.#guards = startGuards(parts.policy, parts.clock.now())
    this.look()
  }

  get handledCount(): number {
    return this.#told + this.#untold
  }

  /** One more success, at that tick or a little later. */
  count(tickAt: number): void {
    this.#untold += 1
    this.#lastHandledAt = tickAt
  }

  /** Tells the guards about the successes so far. True when that changes how many attempts may run. */
  tell(now?: { readonly late: boolean; readonly saturated: boolean } & Ended): boolean {
    if (this.#untold === 0) return false
    const { policy, clock, random, source } = this.#parts
    const at = clock.now()
    const before = this.look()
    const seen = {
      count: this.#untold,
      // Told at once, the moment is exact; told in bulk, it is the tick before.
      at: now === undefined ? this.#lastHandledAt : at,
      late: false,
      saturated: false,
      startedAt: 0,
      inFlight: 1,
      ...now,
    }
    this.#told += this.#untold
    this.#untold = 0
    const { guards, events } = learnHandled(policy, before, seen, { source, now: at, random })
    this.report(events)
    this.learn(guards)
    return guards.breaker !== before.breaker || guards.limit !== before.limit
  }

  /** What to do about a failed attempt. Nothing is remembered until `learn`. */
  decide(attempt: Tried, error: unknown, ended: Ended): DecideResult {
    const { policy, clock, random } = this.#parts
    const now = clock.now()
    return decide({
      policy,
      delivery: attempt.delivery,
      outcome: { kind: 'failure', failure: this.#diagnose(error, now), ...ended },
      cycle: attempt.failures,
      guards: this.look(),
      now,
      random,
    })
  }

  /** The dependency was asked how it is, and did not answer well. */
  learnTrouble(error: unknown, ended: Ended): void {
    const { source, clock, random, policy } = this.#parts
    const now = clock.now()
    const failed = { failure: this.#diagnose(error, now), messageId: source, ...ended }
    const { guards, events } = learnFailure(policy, this.look(), failed, { source, now, random })
    this.report(events)
    this.learn(guards)
  }

  /** Takes a retry from the budget, if there is one. */
  payForRetry(): boolean {
    const { policy, clock, random } = this.#parts
    if (policy.budget === undefined) return true
    // Only asked: what is over budget takes no place in the stages.
    const budget = { ...policy.budget, whenOver: 'deadLetter' } as const
    const { state, granted } = takeRetry(budget, this.#guards.budget, clock.now(), random)
    this.#guards = { ...this.#guards, budget: state }
    return granted
  }

  /** What to do with a delivery while the breaker is open and the policy says not to wait. */
  giveUp(delivery: Delivery): DecideResult {
    const { policy, clock, random } = this.#parts
    return giveUpUnrun({ policy, delivery, guards: this.look(), now: clock.now(), random })
  }

  #diagnose(error: unknown, now: number): Failure {
    const { policy, handlerName } = this.#parts
    const { failure, ruleProblems } = diagnose(error, {
      rules: policy.rules,
      handler: handlerName,
      includeStack: policy.deadLetter.stack,
      now,
    })
    for (const problem of ruleProblems) this.#reportRule(problem, now)
    return failure
  }

  #reportRule(error: unknown, at: number): void {
    publish({ type: 'user_code_failed', at, source: this.#parts.source, where: 'classify', error })
  }

  /** Told before anything is done about them, so that a log reads cause first. */
  report(events: readonly CoreEvent[]): void {
    for (const event of events) publish(event)
  }

  learn(guards: Guards): void {
    this.#guards = guards
    const { dependency, policy } = this.#parts
    const breaker = policy.breaker === undefined ? dependency.breaker : guards.breaker
    dependency.learn(breaker, guards.outage)
  }

  /** The guards as they are: other consumers of the same dependency may have learned something. */
  look(): Guards {
    const { breaker, outage } = this.#seen()
    this.#guards = { ...this.#guards, breaker, outage }
    this.isCalm = breaker.phase === 'closed' && breaker.failures === 0
    return this.#guards
  }

  /** Without a breaker of its own, a consumer heeds only one that a person has isolated. */
  #seen(): Pick<Guards, 'breaker' | 'outage'> {
    const { breaker, outage } = this.#parts.dependency
    const isHeeded = this.#parts.policy.breaker !== undefined || breaker.phase === 'isolated'
    return { breaker: isHeeded ? breaker : CLOSED, outage }
  }

  allowed(now: number): number {
    return attemptsAllowed(this.#parts.policy, this.#guards, now)
  }

  pausedUntil(now: number): number | undefined {
    return pausedUntil(this.#guards, now)
  }

  breakerPhase(now: number): BreakerPhase {
    return breakerPhase(this.#guards.breaker, now)
  }
}
