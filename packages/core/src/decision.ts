import type { FailureCycle } from './delivery.ts'
import type { Failure } from './failure.ts'

/** Done with it: acknowledge. */
export interface Settle {
  readonly kind: 'settle'
  readonly reason: 'handled' | 'already_handled'
}

/** Run it again, not before `dueAt`. */
export interface RetryAt {
  readonly kind: 'retryAt'
  readonly reason:
    | 'backoff'
    | 'pushback'
    /** The budget or an open breaker allows it only later than its backoff. */
    | 'held_back'
    /** It came back before its time because the broker's longest delay is shorter. */
    | 'not_due'
  readonly dueAt: number
  readonly delayMs: number
  readonly cycle: FailureCycle
  readonly failure: Failure | undefined
}

/** Give it back unharmed and stop consuming until then. No attempt is counted. */
export interface Pause {
  readonly kind: 'pause'
  readonly reason:
    | 'dependency_sick'
    | 'flood'
    /** Another delivery must run alone first. */
    | 'trial'
    /** The broker does not confirm what we hand over. */
    | 'hand_off_failing'
    | 'asked'
    | 'stopping'
  readonly until: number
  readonly failure: Failure | undefined
}

/** Suspected poison: set aside, reversibly. */
export interface Quarantine {
  readonly kind: 'quarantine'
  readonly reason: 'same_failure_repeated' | 'crash_loop'
  readonly failure: Failure
  readonly cycle: FailureCycle
}

/** Given up, with its whole history. */
export interface DeadLetter {
  readonly kind: 'deadLetter'
  readonly reason: 'terminal' | 'attempts_exhausted' | 'too_old' | 'over_budget' | 'breaker_open'
  readonly failure: Failure
  readonly cycle: FailureCycle
}

/** Forget it, because the policy says so for this one. */
export interface Drop {
  readonly kind: 'drop'
  readonly reason: 'filtered' | 'over_budget'
  readonly failure: Failure
  readonly cycle: FailureCycle
}

/** What must happen next. Always a value, always with a reason; a transport enacts it. */
export type Decision = Settle | RetryAt | Pause | Quarantine | DeadLetter | Drop

export const SETTLE: Settle = Object.freeze({ kind: 'settle', reason: 'handled' })
export const ALREADY_HANDLED: Settle = Object.freeze({ kind: 'settle', reason: 'already_handled' })
