import { type Clock, systemClock } from './clock.ts'

export interface LeasesOptions<D> {
  /** Duration of a lease in the broker. */
  readonly leaseMs: number
  /**
   * Renews the leases of these deliveries at the broker. Returns the deliveries that have another owner now.
   * Must settle, also when the broker does not respond.
   */
  readonly renew: (deliveries: readonly D[]) => Promise<readonly D[]>
  /** Receives each delivery that has another owner. It is not in flight any more. */
  readonly onLost: (delivery: D) => void
  /** Receives the error of a failed renewal. The next one follows after a third of the lease. */
  readonly onError: (error: unknown) => void
  readonly clock?: Clock
}

/** Two of three renewals may fail before a lease ends. */
const RENEWALS_PER_LEASE = 3

/**
 * The deliveries in flight of a transport whose broker leases messages. Their leases are renewed while handlers
 * run. A lease that is younger than half of the interval is not renewed, so fast handlers cost no requests.
 */
export class Leases<D> {
  readonly #options: LeasesOptions<D>
  readonly #clock: Clock
  readonly #intervalMs: number
  /** Deliveries in flight, with the start of their lease. */
  readonly #inFlight = new Map<D, number>()
  #cancel: (() => void) | undefined

  constructor(options: LeasesOptions<D>) {
    this.#options = options
    this.#clock = options.clock ?? systemClock
    this.#intervalMs = options.leaseMs / RENEWALS_PER_LEASE
  }

  get size(): number {
    return this.#inFlight.size
  }

  has(delivery: D): boolean {
    return this.#inFlight.has(delivery)
  }

  /** Returns the deliveries in flight, in the order of their claims. */
  all(): readonly D[] {
    return [...this.#inFlight.keys()]
  }

  /** Adds a delivery. Pass the time before the request that claimed it: its lease started later. */
  add(delivery: D, claimedAt: number = this.#clock.now()): void {
    this.#inFlight.set(delivery, claimedAt)
  }

  /** Removes a delivery, because it is settled or lost. Returns false when it was not in flight. */
  delete(delivery: D): boolean {
    return this.#inFlight.delete(delivery)
  }

  start(): void {
    this.#cancel = this.#clock.after(
      this.#intervalMs,
      () => {
        // It does not reject: `renew` and its callbacks are in one try.
        void this.#renewOld().finally(() => {
          if (this.#cancel !== undefined) this.start()
        })
      },
      { isBackground: true },
    )
  }

  /** Ends the renewals. Deliveries stay in flight until they are deleted. */
  stop(): void {
    this.#cancel?.()
    this.#cancel = undefined
  }

  async #renewOld(): Promise<void> {
    const now = this.#clock.now()
    const isOld = ([, since]: readonly [D, number]) => since <= now - this.#intervalMs / 2
    const old = [...this.#inFlight].filter(isOld).map(([delivery]) => delivery)
    if (old.length === 0) return
    try {
      const lost = await this.#options.renew(old)
      for (const delivery of lost) if (this.delete(delivery)) this.#options.onLost(delivery)
      for (const delivery of old) if (this.has(delivery)) this.add(delivery, now)
    } catch (error) {
      if (this.#cancel !== undefined) this.#options.onError(error)
    }
  }
}
