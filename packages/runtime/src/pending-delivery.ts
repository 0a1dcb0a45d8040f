import type { DeadLetter, Decision, Delivery, Failure, FailureCycle, Pause } from '@redrive/core'
import type { Admission } from '@redrive/core/internal'
import type { Capabilities } from './capabilities.ts'

/** A delivery that waits for its turn. */
export interface PendingDelivery<D extends Delivery> {
  readonly delivery: D
  /** The current failures. After an inline retry they are newer than the delivery's own cycle. */
  readonly failures: FailureCycle
  /** Set when it has been admitted before. */
  readonly admission: Admission | undefined
  /** Earliest time to run, here or elsewhere. */
  readonly dueAt: number
}

export function newPendingDelivery<D extends Delivery>(
  delivery: D,
  failures: FailureCycle = delivery.cycle,
): PendingDelivery<D> {
  return { delivery, failures, admission: undefined, dueAt: 0 }
}

/** Returns the decision to return a delivery now, for a reason that is not its own failure. */
export function pauseDecision(reason: Pause['reason'], now: number): Pause {
  return { kind: 'pause', reason, until: now, failure: undefined }
}

/** Returns true when the delivery failed in this process: the broker does not know these failures. */
export function hasOwnFailures<D extends Delivery>({
  delivery,
  failures,
}: PendingDelivery<D>): boolean {
  return failures !== delivery.cycle
}

/**
 * Returns the decision that returns a delivery to its source unchanged. A return would lose attempts that
 * only this process has counted, so such a delivery is handed off with them instead. In lane order it
 * cannot leave its position, so those attempts are lost.
 */
export function returnDecision<D extends Delivery>(
  pending: PendingDelivery<D>,
  pause: Pause,
  order: 'none' | 'lane',
  now: number,
): Decision {
  if (!hasOwnFailures(pending) || order === 'lane') return pause
  const dueAt = Math.max(now, pause.until, pending.dueAt)
  return {
    kind: 'retryAt',
    reason: 'held_back',
    dueAt,
    delayMs: dueAt - now,
    cycle: pending.failures,
    failure: pause.failure,
  }
}

/**
 * Returns what replaces a retry that the broker never stores: a dead letter. A message that is only returned,
 * with the failures of this process, is returned without them instead.
 */
export function insteadOfRetry(decision: Decision, now: number): DeadLetter | Pause | undefined {
  if (decision.kind !== 'retryAt') return undefined
  const { cycle, reason } = decision
  if (reason === 'held_back' && decision.failure === undefined)
    return pauseDecision('requested', now)
  const failure = decision.failure ?? failureIn(cycle)
  return failure && { kind: 'deadLetter', reason: 'too_large', failure, cycle }
}

/** Returns the last failure of a message that waits for a part of its delay: its headers contain it. */
function failureIn({ history }: FailureCycle): Failure | undefined {
  const last = history.at(-1)
  if (last === undefined) return undefined
  const { class: failureClass, signature, code, type = 'Error', message } = last
  const unknown = { retryAfterMs: undefined, timedOut: false, stack: undefined }
  return { class: failureClass, signature, code, type, message, ...unknown }
}

/**
 * Splits a delay that the broker cannot do in one step; the message carries the rest of it. This
 * applies to delays longer than the broker's longest. It also applies on a broker with fixed
 * delays, when rounding up would add much: rounding would bring together messages that jitter
 * has spread.
 */
export function splitDelay(decision: Decision, { delay }: Capabilities): Decision {
  if (decision.kind !== 'retryAt') return decision
  const partMs = firstPartOf(decision.delayMs, delay)
  const remainingMs = Math.max(0, decision.delayMs - partMs)
  return {
    ...decision,
    cycle: { ...decision.cycle, remainingMs },
    dueAt: decision.dueAt - remainingMs,
    delayMs: decision.delayMs - remainingMs,
  }
}

/** 10 % late is acceptable: another step would cost more than it gains. */
const LATENESS = 0.1

function firstPartOf(delayMs: number, delay: Capabilities['delay']): number {
  if (delay.kind === 'none') return 0
  const { longestMs, stepsMs } = delay
  if (stepsMs === undefined) return Math.min(delayMs, longestMs)
  const above = stepsMs.find((stepMs) => stepMs >= delayMs)
  if (above !== undefined && above - delayMs <= delayMs * LATENESS) return delayMs
  return stepsMs.findLast((stepMs) => stepMs < delayMs) ?? delayMs
}
