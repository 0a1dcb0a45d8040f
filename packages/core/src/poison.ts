import type { FailureCycle } from './delivery.ts'
import type { Failure, FailureClass } from './failure.ts'

/** When a message is suspected of being poison. */
export interface PoisonPolicy {
  /** Failures with the same signature, this one included. */
  readonly repeats: number
  readonly windowMs: number
  /** Classes it applies to: a transient failure repeats because the dependency is still down. */
  readonly classes: readonly FailureClass[]
  /** Hand-outs without a word from us that make a message suspect. */
  readonly suspectDeliveries: number
  /** Deaths of a process that held only this message. */
  readonly trials: number
}

/** `cycle` already contains the failure. */
export function isPoison(
  policy: PoisonPolicy,
  cycle: FailureCycle,
  failure: Failure,
  now: number,
): boolean {
  if (!policy.classes.includes(failure.class)) return false
  const alike = cycle.history.filter(
    (attempt) => attempt.signature === failure.signature && now - attempt.at <= policy.windowMs,
  )
  return alike.length >= policy.repeats
}

/**
 * What the broker's delivery count says about crashes.
 *
 * A process that dies takes all its deliveries with it, the innocent with the guilty. So a message
 * handed out too often is only *suspect*: it runs alone, with everything else given back first. From
 * then on only its own deaths add to its count, and after `trials` of them it is poison.
 */
export type CrashVerdict = 'clean' | 'suspect' | 'poison'

export function judgeCrashes(policy: PoisonPolicy, deliveryCount: number): CrashVerdict {
  if (deliveryCount < policy.suspectDeliveries) return 'clean'
  return deliveryCount < policy.suspectDeliveries + policy.trials ? 'suspect' : 'poison'
}

/** No error was ever caught: the process died before it could say one. */
export const CRASH_LOOP: Failure = Object.freeze({
  class: 'unknown',
  signature: 'crash-loop',
  type: 'CrashLoop',
  code: 'CRASH_LOOP',
  message: 'it was in hand, at last alone, when processes or connections died without a word',
  retryAfterMs: undefined,
  timedOut: false,
  stack: undefined,
})
