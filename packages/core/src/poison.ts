import type { FailureCycle } from './delivery.ts'
import type { Failure, FailureClass } from './failure.ts'

/** The limits that make a message suspected poison. */
export interface PoisonPolicy {
  /** Counted failures with the same signature, including this one. */
  readonly repeats: number
  readonly windowMs: number
  /** Classes it applies to. A transient failure repeats because the dependency is still down. */
  readonly classes: readonly FailureClass[]
  /** Deliveries without a settlement that make a message suspect. */
  readonly suspectDeliveries: number
  /** Crashes of a process that had only this message in flight. */
  readonly trials: number
}

/** Returns true when the message is poison; `cycle` already contains the failure. */
export function isPoison(
  policy: PoisonPolicy,
  cycle: FailureCycle,
  failure: Failure,
  now: number,
): boolean {
  if (!policy.classes.includes(failure.class)) return false
  const alike = cycle.history.filter(
    ({ counted, signature, at }) =>
      counted && signature === failure.signature && now - at <= policy.windowMs,
  )
  return alike.length >= policy.repeats
}

/**
 * What the broker's delivery count shows about crashes.
 *
 * A crash of a process affects all its deliveries, also those of good messages. So a message that was
 * delivered too often is only *suspect*: it runs alone, after all others were returned. From
 * then on only its own crashes add to its count, and after `trials` of them it is poison.
 */
export type CrashVerdict = 'clean' | 'suspect' | 'poison'

export function judgeCrashes(policy: PoisonPolicy, deliveryCount: number): CrashVerdict {
  if (deliveryCount < policy.suspectDeliveries) return 'clean'
  return deliveryCount < policy.suspectDeliveries + policy.trials ? 'suspect' : 'poison'
}

/** The failure of a crash loop. No error was caught, because the process crashed first. */
export const CRASH_LOOP: Failure = Object.freeze({
  class: 'unknown',
  signature: 'crash-loop',
  type: 'CrashLoop',
  code: 'CRASH_LOOP',
  message: 'the process crashed or disconnected each time it handled this message',
  retryAfterMs: undefined,
  timedOut: false,
  stack: undefined,
})
