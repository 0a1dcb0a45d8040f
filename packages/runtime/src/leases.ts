import { type Clock, systemClock } from './clock.ts'

export interface LeasesOptions<D> {
  /** Duration of a lease in the broker. */
  readonly leaseMs: number
  /**
   * Renews the leases of these deliveries at the broker. Returns the deliveries that have another owner now.
   * Must settle, also when the broker does not respond.
   */
  readonly renew: (deliveries: readonly D[]) => Promise<readonly D[]>
  /**
   * Receives each delivery that has another owner, or may have one: no renewal was confirmed before the end of its
   * lease. It is not in flight any more.
   */
  readonly onLost: (delivery: D) => void
  /** Receives the error of a failed renewal. The next one follows after a third of the lease. */
  readonly onError: (error: unknown) => void
  readonly clock?: Clock
}

/** One renewal may fail before a lease ends, and two if the lease was old enough for the first. */
const RENEWALS_PER_LEASE = 3

/**
 * The deliveries in flight of a transport whose broker leases messages. Their leases are renewed while handlers
 * run. A lease that is younger than half of the interval is not renewed, so fast handlers cost no requests.
 *
 * Without a connection, the broker cannot report that another consumer took over. So a lease also ends here: at the first
 * time at which the broker can end it, by a clock of this process that has no jumps.
 */
export class Leases<D> {
  readonly #options: LeasesOptions<D>
  readonly #clock: Clock
  readonly #intervalMs: number
  /** Deliveries in flight, with the start of their lease. */
  readonly #inFlight = new Map<D, number>()
  /** Deliveries with a decision. Their handlers have ended. */
  readonly #decided = new Set<D>()
  #cancel: (() => void) | undefined
  #cancelCheck: (() => void) | undefined
  /** Time of the next check for ended leases. */
  #checkAt = Number.POSITIVE_INFINITY

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
    // The claim was slow, or this is the first delivery.
    if (claimedAt + this.#options.leaseMs < this.#checkAt && this.#cancel !== undefined)
      this.#watch()
  }

  /**
   * Marks a delivery whose handler has ended. Its lease ends only at the broker, which checks the owner of the
   * hand-off. Without a connection, the result of the hand-off is unknown, and it is repeated.
   */
  decided(delivery: D): void {
    if (this.has(delivery)) this.#decided.add(delivery)
  }

  /** Removes a delivery, because it is settled or lost. Returns false when it was not in flight. */
  delete(delivery: D): boolean {
    this.#decided.delete(delivery)
    return this.#inFlight.delete(delivery)
  }

  start(): void {
    this.#renewNext()
    this.#watch()
  }

  #renewNext(): void {
    const renew = () => {
      // First: a renewal without a response must not delay the next one.
      this.#renewNext()
      // It does not reject: `renew` and its callbacks are in one try.
      void this.#renewOld()
    }
    this.#cancel = this.#clock.after(this.#intervalMs, renew, { isBackground: true })
  }

  /** Ends the renewals. Deliveries stay in flight until they are deleted. */
  stop(): void {
    this.#cancel?.()
    this.#cancel = undefined
    this.#cancelCheck?.()
    this.#cancelCheck = undefined
  }

  /** Renews all leases now. Rejects when the broker does not confirm it. */
  renewAll(): Promise<void> {
    return this.#renew(this.all())
  }

  async #renewOld(): Promise<void> {
    const oldest = this.#clock.now() - this.#intervalMs / 2
    const isOld = ([, since]: readonly [D, number]) => since <= oldest
    try {
      await this.#renew([...this.#inFlight].filter(isOld).map(([delivery]) => delivery))
    } catch (error) {
      if (this.#cancel !== undefined) this.#options.onError(error)
    }
  }

  async #renew(deliveries: readonly D[]): Promise<void> {
    if (deliveries.length === 0) return
    const sentAt = this.#clock.now()
    for (const delivery of await this.#options.renew(deliveries)) this.#lose(delivery)
    for (const delivery of deliveries) {
      const since = this.#inFlight.get(delivery)
      // A later renewal may have been confirmed before.
      if (since !== undefined && since < sentAt) this.#inFlight.set(delivery, sentAt)
    }
  }

  #lose(delivery: D): void {
    if (this.delete(delivery)) this.#options.onLost(delivery)
  }

  /** Checks again when the next lease can end, and at least as often as leases are renewed. */
  #watch(): void {
    this.#cancelCheck?.()
    const { leaseMs } = this.#options
    const now = this.#clock.now()
    let waitMs = this.#intervalMs
    for (const [delivery, since] of this.#inFlight) {
      if (!this.#decided.has(delivery)) waitMs = Math.min(waitMs, since + leaseMs - now)
    }
    this.#checkAt = now + waitMs
    const check = () => {
      this.#loseEnded()
      this.#watch()
    }
    this.#cancelCheck = this.#clock.after(Math.max(0, waitMs), check, { isBackground: true })
  }

  #loseEnded(): void {
    const endedSince = this.#clock.now() - this.#options.leaseMs
    for (const [delivery, since] of [...this.#inFlight]) {
      if (since <= endedSince && !this.#decided.has(delivery)) this.#lose(delivery)
    }
  }
}
