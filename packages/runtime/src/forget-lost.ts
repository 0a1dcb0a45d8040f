import { type Delivery, RedriveError } from '@redrive/core'
import type { Attempt, Deadlines } from './attempt.ts'
import type { Capacity } from './capacity.ts'
import type { HandOff } from './handoff.ts'
import type { InlineRetries } from './inline.ts'
import type { LostDeliveries } from './lost-deliveries.ts'
import type { PendingDelivery } from './pending-delivery.ts'
import type { SlowedDeadLetters } from './slowed-dead-letters.ts'
import type { Trial } from './trial.ts'
import type { UnendedRuns } from './unended-runs.ts'

/** The parts of the loop in which a delivery can be. */
interface LossParts<D extends Delivery> {
  readonly capacity: Capacity<D>
  readonly deadlines: Deadlines<D>
  readonly handOff: Pick<HandOff<D>, 'returning'>
  readonly inline: InlineRetries<D>
  readonly losses: LostDeliveries<D>
  readonly slowed: SlowedDeadLetters<D>
  readonly trial: Trial<D>
  readonly unended: UnendedRuns<D>
  readonly waiting: PendingDelivery<D>[]
  interrupt(attempt: Attempt<D>, error: RedriveError): void
}

/**
 * Forgets deliveries that the broker took back. The signal of a handler that runs one is aborted: this process neither
 * retries nor settles it.
 */
export function forgetLost<D extends Delivery>(parts: LossParts<D>, lost: ReadonlySet<D>): void {
  const { capacity, deadlines, handOff, inline, losses, slowed, trial, unended, waiting } = parts
  // The broker counts each of them as delivered, but this process did not crash. It does not count one that
  // was returned just before.
  for (const one of lost) if (!handOff.returning.has(one)) losses.add(one.id)
  const kept = waiting.filter(({ delivery }) => !lost.has(delivery))
  waiting.splice(0, waiting.length, ...kept)
  slowed.forget(lost)
  const held = unended.takeHeld(lost)
  const retries = inline.takeThose(lost)
  for (const attempt of [...deadlines.all(), ...unended.attempts]) {
    if (!lost.has(attempt.delivery)) continue
    attempt.isLost = true
    if (attempt.interruptedBy === undefined) parts.interrupt(attempt, lostError())
  }
  const isTrialOver =
    (trial.suspect !== undefined && lost.has(trial.suspect.delivery)) ||
    held.some(({ alone }) => alone) ||
    retries.some(({ admission }) => admission?.kind === 'runAlone')
  if (isTrialOver) capacity.endTrial()
  else capacity.refresh()
}

const lostError = () =>
  new RedriveError(
    'DELIVERY_LOST',
    'The broker took the delivery back while its handler ran. Another consumer may run the message now.',
  )
