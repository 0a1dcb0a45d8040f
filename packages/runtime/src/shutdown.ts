import { type Delivery, RedriveError } from '@redrive/core'
import type { Loop } from './loop.ts'

/** A fifth of the drain time is reserved to hand off deliveries that handlers did not finish. */
const HAND_OFF_SHARE = 0.2

/** Half of that time: handlers that pass their signal on end now. The other half is for the hand-offs. */
const GRACE_SHARE = 0.5

/** Finishes running handlers within `drainMs`, returns the rest, and closes the transport. */
export async function shutDown<D extends Delivery>(loop: Loop<D>, drainMs: number): Promise<void> {
  const { clock, transport } = loop.deps
  const endsAt = clock.now() + drainMs
  loop.capacity.stop()
  loop.enacting.returnAll(loop.inline.takeAll(), 'stopping')
  loop.enacting.returnAll(loop.unended.takeAllHeld(), 'stopping')
  loop.slowed.stop()
  await loop.capacity.idle.wait(drainMs * (1 - HAND_OFF_SHARE))
  const stopping = new RedriveError('STOPPING', 'The consumer is stopping.')
  for (const attempt of loop.deadlines.all()) loop.interrupt(attempt, stopping)
  const restMs = Math.max(0, endsAt - clock.now())
  await loop.capacity.idle.wait(Math.min(loop.deps.policy.graceMs, restMs * GRACE_SHARE))
  loop.unended.endGrace()
  const remainingMs = Math.max(0, endsAt - clock.now())
  await loop.capacity.idle.wait(remainingMs)
  loop.unended.reportRemaining()
  loop.capacity.recordSuccesses()
  loop.handOff.abandon()
  releaseAll(loop)
  await transport.close({ drainMs: remainingMs })
}

/** Ends timers and subscriptions, after the shutdown or a failed start. */
export function releaseAll<D extends Delivery>(loop: Loop<D>): void {
  const { capacity, deadlines, inline, slowed, unended } = loop
  inline.takeAll()
  slowed.cancelAll()
  capacity.release()
  unended.stop()
  deadlines.stop()
}
