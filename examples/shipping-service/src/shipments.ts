import { z } from 'zod'

/** An order that is ready to be shipped, as the warehouse adds it to the stream. */
export const Order = z.object({
  order: z.string(),
  country: z.enum(['DE', 'FR', 'NL']),
})
export type Order = z.infer<typeof Order>

/** The bookings at the carrier; in a real service this is an HTTP API. */
export class Shipments {
  readonly booked = new Map<string, Order['country']>()
  isCarrierDown = false
  /** Number of failed calls of the carrier. */
  failures = 0

  book({ order, country }: Order): void {
    if (this.isCarrierDown) {
      this.failures += 1
      throw new CarrierAway()
    }
    this.booked.set(order, country)
  }
}

/** An error as an HTTP client would throw it. */
class CarrierAway extends Error {
  readonly code = 'ECONNREFUSED'

  constructor() {
    super('the carrier does not respond')
  }
}
