import {
  type BreakerPhase,
  type CoreEvent,
  type DecideResult,
  type Decision,
  type Delivery,
  decide,
  type Failure,
  type FailureCycle,
  type Guards,
  type Policy,
  type Random,
  startGuards,
} from '@redrive/core'
import {
  attemptsAllowed,
  breakerPhase,
  CLOSED,
  diagnose,
  deadLetterWithoutAttempt,
  waitForEarlierRun,
  recordFailure,
  recordSuccesses,
  pausedUntil,
  takeRetry,
} from '@redrive/core/internal'
import type { Attempt, AttemptTiming } from './attempt.ts'
import type { Clock } from './clock.ts'
import type { Dependency } from './dependency.ts'
import { publish } from './events.ts'
import { FailingTogether } from './failing-together.ts'
import { ownSignature, type SignFailure } from './own-signature.ts'
import { UnprovenMessages } from './unproven-messages.ts'

export interface GuardStateDeps {
  readonly source: string
  readonly policy: Policy
  readonly handlerName: string
  readonly dependency: Dependency
  readonly clock: Clock
  readonly random: Random
  /** Gives failures of messages a signature. Undefined: the rules decide. */
  readonly signature?: SignFailure | undefined
}

/** A failed attempt: its delivery, its earlier failures, its span and whether the handler skipped the message. */
export type FailedAttempt = Pick<Attempt, 'delivery' | 'failures'> &
  Partial<Pick<Attempt, 'trace' | 'isSkipped'>>

/**
 * The state of the guards. It shares breaker and outage window with other consumers of the dependency,
 * calls core and saves the result. Successes are counted here and recorded in batches, because
 * they change nothing while no attempt fails.
 */
export class GuardState {
  readonly #deps: GuardStateDeps
  #guards: Guards
  #unrecorded = 0
  #lastHandledAt = 0
  #recorded = 0
  readonly unproven: UnprovenMessages = new UnprovenMessages()
  readonly #together = new FailingTogether()
  /** True when no attempt failed recently: a success then needs no further work. */
  isCalm = true

  constructor(deps: GuardStateDeps) {
    this.#deps = deps
    this.#guards = startGuards(deps.policy, deps.clock.now())
    this.current()
  }

  get handledCount(): number {
    return this.#recorded + this.#unrecorded
  }

  /** The tick of the last success; undefined before the first one. */
  get lastHandledAt(): number | undefined {
    return this.#lastHandledAt === 0 ? undefined : this.#lastHandledAt
  }

  /** Counts one success, at that tick or shortly after. */
  count(tickAt: number): void {
    this.#unrecorded += 1
    this.#lastHandledAt = tickAt
  }

  /** Counts a message that needed no call: skipped, or handled by an earlier run. It shows nothing about the dependency. */
  countWithoutCall(): void {
    this.#recorded += 1
  }

  /** Records the successes so far in the guards. Returns true when that changes how many attempts may run. */
  flushSuccesses(
    now?: { readonly late: boolean; readonly saturated: boolean } & AttemptTiming,
  ): boolean {
    if (this.#unrecorded === 0) return false
    const { policy, clock, random, source } = this.#deps
    const at = clock.now()
    const before = this.current()
    const seen = {
      count: this.#unrecorded,
      // The time is exact when recorded immediately. In a batch it is the tick before.
      at: now === undefined ? this.#lastHandledAt : at,
      late: false,
      saturated: false,
      startedAt: 0,
      inFlight: 1,
      ...now,
    }
    this.#recorded += this.#unrecorded
    this.#deps.dependency.countSuccesses(this.#unrecorded)
    this.#unrecorded = 0
    const { guards, events } = recordSuccesses(policy, before, seen, { source, now: at, random })
    this.report(events)
    this.save(guards)
    return (
      guards.breaker !== before.breaker || guards.adaptiveConcurrency !== before.adaptiveConcurrency
    )
  }

  /** Decides what to do about a failed attempt. The guards change only with `save`. */
  decide(attempt: FailedAttempt, error: unknown, ended: AttemptTiming): DecideResult {
    const { policy, clock, random } = this.#deps
    const now = clock.now()
    const { delivery, trace, isSkipped } = attempt
    const failure = this.#signed(this.#diagnose(error, now), error, delivery, now)
    const result = decide({
      policy,
      delivery,
      outcome: { kind: 'failure', failure, ...ended, trace, isSkipped },
      cycle: attempt.failures,
      guards: this.current(),
      now,
      random,
    })
    this.#deps.dependency.countFailure(failure, now)
    this.unproven.note(delivery, result.decision)
    this.#together.note(attempt.failures, result.decision, now)
    return result
  }

  /** Records a failed health check. */
  recordFailedCheck(error: unknown, ended: AttemptTiming): void {
    const { source, clock, random, policy } = this.#deps
    const now = clock.now()
    // Each check counts as another message: all of them test the dependency, not a message.
    const messageId = `${source}: check at ${now}`
    const failed = { failure: this.#diagnose(error, now), messageId, ...ended }
    const { guards, events } = recordFailure(policy, this.current(), failed, {
      source,
      now,
      random,
    })
    this.report(events)
    this.save(guards)
  }

  /** Takes a retry from the budget, when one is available. */
  takeRetryToken(): boolean {
    const { policy, clock, random } = this.#deps
    if (policy.retryBudget === undefined) return true
    // Does not reserve: a retry over budget takes no slot in the stages.
    const budget = { ...policy.retryBudget, onExceeded: 'deadLetter' } as const
    const { state, granted } = takeRetry(budget, this.#guards.retryBudget, clock.now(), random)
    this.#guards = { ...this.#guards, retryBudget: state }
    return granted
  }

  /** Decides about a delivery whose message still runs here. */
  waitForEarlierRun({ delivery, failures: cycle }: FailedAttempt): DecideResult {
    const { policy, clock, random } = this.#deps
    const guards = this.current()
    return waitForEarlierRun({ policy, delivery, cycle, guards, now: clock.now(), random })
  }

  /** Decides about a delivery while the breaker is open and the policy does not wait. */
  giveUp(delivery: Delivery, cycle: FailureCycle = delivery.cycle): Decision {
    const { policy, clock, random } = this.#deps
    const { decision, guards, events } = deadLetterWithoutAttempt({
      policy,
      delivery,
      cycle,
      guards: this.current(),
      now: clock.now(),
      random,
    })
    this.report(events)
    this.save(guards)
    this.#deps.dependency.countRejection()
    return decision
  }

  #diagnose(error: unknown, now: number): Failure {
    const { policy, handlerName } = this.#deps
    const { failure, ruleProblems } = diagnose(error, {
      rules: policy.rules,
      handler: handlerName,
      includeStack: policy.deadLetter.includeStack,
      now,
    })
    for (const problem of ruleProblems) this.#reportUserCode('classify', problem, now)
    return failure
  }

  /** Replaces the signature by the one that the consumer gives. If its function fails, the rules decide. */
  #signed(failure: Failure, error: unknown, delivery: Delivery, at: number): Failure {
    const { signature: sign, handlerName } = this.#deps
    if (sign === undefined) return failure
    try {
      const signature = ownSignature(sign, error, delivery, handlerName)
      return signature === undefined ? failure : { ...failure, signature }
    } catch (problem) {
      this.#reportUserCode('signature', problem, at)
      return failure
    }
  }

  #reportUserCode(where: 'classify' | 'signature', error: unknown, at: number): void {
    publish({ type: 'user_code_failed', at, source: this.#deps.source, where, error })
  }

  /** Publishes events before their decision is enacted, so that a log shows the cause first. */
  report(events: readonly CoreEvent[]): void {
    const { dependency, handlerName: handler } = this.#deps
    for (const event of events) publish({ ...event, dependency: dependency.name, handler })
  }

  save(guards: Guards): void {
    this.#guards = guards
    const { dependency, policy } = this.#deps
    // An operator may have isolated it meanwhile, also in a listener. Only `restore` ends that.
    const isKept = policy.breaker === undefined || dependency.breaker.phase === 'isolated'
    const breaker = isKept ? dependency.breaker : guards.breaker
    dependency.learn(breaker, guards.outage)
  }

  /** Returns the current guards. Other consumers of the same dependency may have changed them. */
  current(): Guards {
    const { breaker, outage } = this.#shared()
    this.#guards = { ...this.#guards, breaker, outage }
    this.isCalm = breaker.phase === 'closed' && breaker.failures === 0
    return this.#guards
  }

  /** Reads the shared state. A consumer without a breaker respects only one that an operator isolated. */
  #shared(): Pick<Guards, 'breaker' | 'outage'> {
    const { breaker, outage } = this.#deps.dependency
    const isRespected = this.#deps.policy.breaker !== undefined || breaker.phase === 'isolated'
    return { breaker: isRespected ? breaker : CLOSED, outage }
  }

  /** Returns true when several messages failed together and none passed after them, although the breaker is closed. */
  isFailing(now: number): boolean {
    const { handledAt } = this.#deps.dependency.outage
    return this.breakerPhase(now) === 'closed' && this.#together.isOn(handledAt, now)
  }

  allowed(now: number): number {
    return attemptsAllowed(this.#deps.policy, this.#guards, now)
  }

  pausedUntil(now: number): number | undefined {
    return pausedUntil(this.#guards, now)
  }

  breakerPhase(now: number): BreakerPhase {
    return breakerPhase(this.#guards.breaker, now)
  }
}
