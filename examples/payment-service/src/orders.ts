import { type Emitter, nonFailingJob } from '@redrive/runtime'
import type { EVENTS } from './events.ts'
import { Declined, type Order, type PaymentProvider } from './payments.ts'

export interface OrderService {
  /** Charges the order in a separate job. */
  place(order: Order): Promise<'paid' | 'declined'>
  refund(order: Order): Promise<void>
}

/**
 * Accepts orders, charges them and emits events. The code ignores that a sink can be down: in a
 * non-failing job `emit` neither throws nor waits.
 */
export function orderService(
  provider: PaymentProvider,
  events: Emitter<typeof EVENTS>,
): OrderService {
  const chargeCard = nonFailingJob('charge-card', async (order: Order) => {
    const { id, amount } = order
    try {
      const authorisation = await provider.charge(order)
      await events.emit({
        type: 'order.paid',
        key: id,
        data: { order: id, amount, authorisation },
      })
      return 'paid'
    } catch (error) {
      if (!(error instanceof Declined)) throw error
      await events.emit({
        type: 'payment.failed',
        key: id,
        severity: 'warning',
        data: { order: id, amount, why: error.message },
      })
      return 'declined'
    }
  })
  const refund = nonFailingJob('refund-order', async (order: Order) => {
    await provider.refund(order)
    const { id, amount } = order
    await events.emit({ type: 'payment.refunded', key: id, data: { order: id, amount } })
  })
  return { place: chargeCard, refund }
}
