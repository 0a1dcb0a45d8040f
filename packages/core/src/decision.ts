import type { FailureCycle } from './delivery.ts'
import type { Failure } from './failure.ts'

/** The message is done: acknowledge it. */
export interface Settle {
  readonly kind: 'settle'
  readonly reason: 'handled' | 'already_handled'
}

/** Run the message again, not before `dueAt`. */
export interface RetryAt {
  readonly kind: 'retryAt'
  readonly reason:
    | 'backoff'
    | 'pushback'
    /** The budget or an open breaker allows the retry only later than its backoff. */
    | 'held_back'
    /** It was delivered too early, because the broker's longest delay is shorter. */
    | 'not_due'
  readonly dueAt: number
  readonly delayMs: number
  readonly cycle: FailureCycle
  readonly failure: Failure | undefined
}

/** Return the delivery unchanged and stop consuming until then. No attempt is counted. */
export interface Pause {
  readonly kind: 'pause'
  readonly reason:
    | 'dependency_unhealthy'
    | 'flood'
    /** Another delivery must run alone first. */
    | 'trial'
    /** The broker does not confirm the copies that we publish. */
    | 'hand_off_failing'
    /** Handlers that do not end hold every slot. */
    | 'handlers_hung'
    | 'requested'
    | 'stopping'
  readonly until: number
  readonly failure: Failure | undefined
}

/** Suspected poison: set it aside. This can be undone. */
export interface Quarantine {
  readonly kind: 'quarantine'
  readonly reason: 'same_failure_repeated' | 'crash_loop'
  readonly failure: Failure
  readonly cycle: FailureCycle
}

/** Give up the message and keep it with its whole history. */
export interface DeadLetter {
  readonly kind: 'deadLetter'
  readonly reason:
    | 'terminal'
    | 'attempts_exhausted'
    /** It failed for as long or as often as `retry.unproven` allows, and nothing showed whether the message or the dependency is the cause. */
    | 'unproven'
    | 'too_old'
    | 'over_budget'
    | 'breaker_open'
    /** Its retry is too large for the broker. */
    | 'too_large'
  readonly failure: Failure
  readonly cycle: FailureCycle
  /** Set when too many similar messages were given up: the consumer writes this one at that time. */
  readonly notBefore?: number
}

/** Discard the message, because the policy does not keep it. */
export interface Drop {
  readonly kind: 'drop'
  readonly reason: 'filtered' | 'over_budget'
  readonly failure: Failure
  readonly cycle: FailureCycle
}

/** What happens next. It always has a reason; a transport enacts it. */
export type Decision = Settle | RetryAt | Pause | Quarantine | DeadLetter | Drop

export const SETTLE: Settle = Object.freeze({ kind: 'settle', reason: 'handled' })
export const ALREADY_HANDLED: Settle = Object.freeze({ kind: 'settle', reason: 'already_handled' })
