import { z } from 'zod'

/** Events that the service emits. Amounts are in cents. */
export const EVENTS = {
  'order.paid': z.object({ order: z.string(), amount: z.int(), authorisation: z.string() }),
  'payment.failed': z.object({ order: z.string(), amount: z.int(), why: z.string() }),
  'payment.refunded': z.object({ order: z.string(), amount: z.int() }),
  'page.viewed': z.object({ path: z.string() }),
}
