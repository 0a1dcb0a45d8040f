import { z } from 'zod'

/** One scan of a parcel, as the hand-held scanners send it. The parcel is the record's key. */
export const Scan = z.object({
  parcel: z.string(),
  step: z.enum(['picked up', 'sorted', 'on the road', 'delivered']),
})
export type Scan = z.infer<typeof Scan>

/**
 * The service's knowledge of parcels; in a real service this is a database and a call to the
 * carrier.
 */
export class Parcels {
  readonly #steps = new Map<string, Scan['step'][]>()
  /** Parcels of a carrier that does not respond. */
  readonly unreachable = new Set<string>()

  /** Applies a step. Each step depends on the previous one, so order matters. */
  follow({ parcel, step }: Scan): void {
    if (this.unreachable.has(parcel)) throw new CarrierAway(parcel)
    this.#steps.set(parcel, [...this.stepsOf(parcel), step])
  }

  stepsOf(parcel: string): readonly Scan['step'][] {
    return this.#steps.get(parcel) ?? []
  }
}

/** An error as an HTTP client would throw it. */
class CarrierAway extends Error {
  readonly code = 'ECONNREFUSED'

  constructor(parcel: string) {
    super(`the carrier of ${parcel} does not respond`)
  }
}
