import type { Delivery } from '@redrive/core'
import type { Capacity } from './capacity.ts'
import type { Enacting } from './enacting.ts'
import type { HandOff } from './handoff.ts'
import type { InlineRetries } from './inline.ts'
import type { LostDeliveries } from './lost-deliveries.ts'
import type { PendingDelivery } from './pending-delivery.ts'
import type { SlowedDeadLetters } from './slowed-dead-letters.ts'
import type { Trial } from './trial.ts'

/** The parts of the loop that a trial needs. */
interface TrialParts<D extends Delivery> {
  readonly capacity: Capacity<D>
  readonly enacting: Enacting<D>
  readonly handOff: HandOff<D>
  readonly inline: InlineRetries<D>
  readonly losses: LostDeliveries<D>
  readonly slowed: SlowedDeadLetters<D>
  readonly trial: Trial<D>
}

/** Starts a suspect when no other delivery is in flight or arriving. */
export function runAlone<D extends Delivery>(
  { capacity, enacting, handOff, inline, losses, slowed, trial }: TrialParts<D>,
  suspect: PendingDelivery<D>,
  start: () => void,
): void {
  capacity.prepareTrial(suspect)
  enacting.returnAll(inline.takeAll(), 'trial')
  slowed.writeAll()
  const begin = () => {
    losses.handle()
    if (!trial.begin(suspect)) return
    if (capacity.isStopping) enacting.returnAll([suspect], 'stopping')
    else start()
  }
  void capacity.intake.closed.then(() => handOff.whenIdle()).then(begin)
}
