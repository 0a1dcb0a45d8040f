import type { Decision, Delivery } from '@redrive/core'
import { type Admission, admit } from '@redrive/core/internal'
import type { Capacity } from './capacity.ts'
import type { Enacting } from './enacting.ts'
import type { GuardState } from './guard-state.ts'
import type { HandOff } from './handoff.ts'
import type { InlineRetries } from './inline.ts'
import type { LoopDeps } from './loop-deps.ts'
import type { LostDeliveries } from './lost-deliveries.ts'
import type { PendingDelivery } from './pending-delivery.ts'
import { runAlone } from './run-alone.ts'
import type { SlowedDeadLetters } from './slowed-dead-letters.ts'
import type { Trial } from './trial.ts'

/** The parts of the loop that decide which waiting delivery begins. */
interface WaitingParts<D extends Delivery> {
  readonly deps: LoopDeps<D>
  readonly capacity: Capacity<D>
  readonly enacting: Enacting<D>
  readonly guardState: GuardState
  readonly handOff: HandOff<D>
  readonly inline: InlineRetries<D>
  readonly losses: LostDeliveries<D>
  readonly slowed: SlowedDeadLetters<D>
  readonly trial: Trial<D>
  readonly waiting: PendingDelivery<D>[]
  begin(pending: PendingDelivery<D>, alone: boolean): void
  /** Carries out the decision for a delivery that may not run. */
  refuse(pending: PendingDelivery<D>, decision: Decision): void
}

/** Runs waiting deliveries while there is room. Returns all of them when none may run. */
export function runWaiting<D extends Delivery>(parts: WaitingParts<D>): void {
  const { capacity, enacting, waiting, losses } = parts
  // Before each run: the broker may take a delivery back in this turn, also while a handler begins.
  for (losses.handle(); waiting.length > 0 && capacity.hasRoom; losses.handle()) {
    const first = waiting[0] as PendingDelivery<D>
    const admission = capacity.isGivingUp ? giveUp(parts, first) : admissionOf(parts, first)
    if (admission.kind === 'runAlone' && capacity.running > 0) {
      if (runBehind(parts, first)) continue
      return
    }
    waiting.shift()
    beginAs(parts, first, admission)
  }
  if (capacity.allowed === 0) enacting.returnWaiting(waiting, capacity)
}

function beginAs<D extends Delivery>(
  parts: WaitingParts<D>,
  pending: PendingDelivery<D>,
  admission: Admission,
): void {
  if (admission.kind === 'run' && parts.trial.isSerial) parts.capacity.endSerial()
  if (admission.kind === 'refused') parts.refuse(pending, admission.decision)
  else if (admission.kind === 'runAlone') runAlone(parts, pending, () => parts.begin(pending, true))
  else parts.begin(pending, false)
}

/**
 * Begins a delivery behind a suspect that waits to run alone, and returns whether there is one. While short attempts
 * run, the others wait. While only long ones run, the others pass one at a time, until the suspect has waited for
 * as long as an attempt may take.
 */
function runBehind<D extends Delivery>(
  parts: WaitingParts<D>,
  suspect: PendingDelivery<D>,
): boolean {
  const { capacity, waiting, trial, deps } = parts
  const now = deps.clock.now()
  const mayPass = now < trial.waitsFrom(suspect, now) + deps.policy.timeoutMs
  if (capacity.running > capacity.longRuns || !mayPass) return false
  for (const [position, pending] of waiting.entries()) {
    const admission = admissionOf(parts, pending)
    if (admission.kind === 'runAlone') continue
    waiting.splice(position, 1)
    beginAs(parts, pending, admission)
    return true
  }
  return false
}

function giveUp<D extends Delivery>(
  { guardState }: WaitingParts<D>,
  { delivery, failures }: PendingDelivery<D>,
): Admission {
  return { kind: 'refused', decision: guardState.giveUp(delivery, failures) }
}

/** Checks the rest of the delay and crashes, in this order. */
function admissionOf<D extends Delivery>(
  { deps: { policy, clock }, losses }: WaitingParts<D>,
  { delivery, admission }: PendingDelivery<D>,
): Admission {
  if (admission !== undefined) return admission
  const deliveryCount = Math.max(1, delivery.deliveryCount - losses.count(delivery.id))
  return admit({ policy, delivery: { cycle: delivery.cycle, deliveryCount }, now: clock.now() })
}
