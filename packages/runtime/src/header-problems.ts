import type { Delivery } from '@redrive/core'
import type { Clock } from './clock.ts'
import { publish } from './events.ts'

/** Publishes an event when headers of the delivery could not be read. */
export function reportHeaderProblems(delivery: Delivery, clock: Clock): void {
  if (delivery.headerProblems.length === 0) return
  const { id: deliveryId, source, headerProblems: problems } = delivery
  publish({ type: 'headers_unreadable', at: clock.now(), source, deliveryId, problems })
}
