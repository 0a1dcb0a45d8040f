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

/** A delay longer than the broker's longest is taken in legs: the message remembers when it is really due. */
export function inLegs(decision: Decision, { delay }: Capabilities): Decision {
  if (decision.kind !== 'retryAt') return decision
  const overMs = decision.delayMs - (delay.kind === 'none' ? 0 : delay.longestMs)
  if (overMs <= 0) return decision
  const cycle = { ...decision.cycle, notBefore: decision.dueAt }
  return { ...decision, cycle, dueAt: decision.dueAt - overMs, delayMs: decision.delayMs - overMs }
}
