import type { Admission, Decision, Delivery, FailureCycle, Pause } from '@redrive/core'
import type { Capabilities } from './capabilities.ts'

/** A delivery that waits for its turn. */
export interface Work<D extends Delivery> {
  readonly delivery: D
  /** Ahead of the delivery's own cycle after an inline retry. */
  readonly failures: FailureCycle
  /** Known when it has been admitted before. */
  readonly admission: Admission | undefined
  /** Not to run before this moment, wherever it goes. */
  readonly dueAt: number
}

export function newWork<D extends Delivery>(
  delivery: D,
  failures: FailureCycle = delivery.cycle,
): Work<D> {
  return { delivery, failures, admission: undefined, dueAt: 0 }
}

/**
 * How a delivery leaves our hands unharmed: back to its source. Attempts that only this process
 * knows of would be forgotten that way, so then it is handed off with them; in lane order it cannot
 * leave its place, and they are.
 */
export function givingBack<D extends Delivery>(
  { delivery, failures, dueAt: ownDueAt }: Work<D>,
  pause: Pause,
  order: 'none' | 'lane',
  now: number,
): Decision {
  if (failures === delivery.cycle || order === 'lane') return pause
  const dueAt = Math.max(now, pause.until, ownDueAt)
  return {
    kind: 'retryAt',
    reason: 'held_back',
    dueAt,
    delayMs: dueAt - now,
    cycle: failures,
    failure: pause.failure,
  }
}

/**
 * A delay that the broker cannot hold in one piece is taken in legs: the message remembers when it is
 * really due. That is one longer than the broker's longest; and on a broker that knows only certain
 * delays one that would be rounded up by much, because rounding brings those together again whom
 * jitter has spread.
 */
export function inLegs(decision: Decision, { delay }: Capabilities): Decision {
  if (decision.kind !== 'retryAt') return decision
  const legMs = legOf(decision.delayMs, delay)
  const overMs = decision.delayMs - legMs
  if (overMs <= 0) return { ...decision, cycle: { ...decision.cycle, notBefore: undefined } }
  const cycle = { ...decision.cycle, notBefore: decision.dueAt }
  return { ...decision, cycle, dueAt: decision.dueAt - overMs, delayMs: legMs }
}

/** 10 % late is on time: another leg for less would cost more than it gives. */
const LATENESS = 0.1

function legOf(delayMs: number, delay: Capabilities['delay']): number {
  if (delay.kind === 'none') return 0
  const { longestMs, stepsMs } = delay
  if (stepsMs === undefined) return Math.min(delayMs, longestMs)
  const above = stepsMs.find((stepMs) => stepMs >= delayMs)
  if (above !== undefined && above - delayMs <= delayMs * LATENESS) return delayMs
  return stepsMs.findLast((stepMs) => stepMs < delayMs) ?? delayMs
}
