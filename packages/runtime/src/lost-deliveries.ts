import type { Delivery } from '@redrive/core'

/** 10,000 messages: more than any prefetch that returns after a lost connection. */
const MAX_MESSAGES = 10_000

/**
 * Deliveries lost while this process stayed alive. The broker counts them, but they are no crashes.
 */
export class LostDeliveries<D extends Delivery> {
  readonly #onLost: (lost: ReadonlySet<D>) => void
  readonly #times = new Map<string, number>()
  #newlyLost = new Set<D>()

  constructor(onLost: (lost: ReadonlySet<D>) => void) {
    this.#onLost = onLost
  }

  /** Collects deliveries that are lost together, as with a connection, to handle all of them in one pass. */
  collect(delivery: D): void {
    if (this.#newlyLost.size === 0) queueMicrotask(() => this.handle())
    this.#newlyLost.add(delivery)
  }

  /** Handles the collected losses now. The broker may deliver a message again before the microtask runs. */
  handle(): void {
    if (this.#newlyLost.size === 0) return
    const lost = this.#newlyLost
    this.#newlyLost = new Set()
    this.#onLost(lost)
  }

  add(messageId: string): void {
    const times = this.count(messageId) + 1
    // Deleted first, so that the map is ordered by the last loss.
    this.#times.delete(messageId)
    this.#times.set(messageId, times)
    const [oldest] = this.#times.keys()
    if (this.#times.size > MAX_MESSAGES && oldest !== undefined) this.#times.delete(oldest)
  }

  /** Forgets the losses of a message, because the broker counts its next delivery as the first. */
  forget(messageId: string): void {
    this.#times.delete(messageId)
  }

  count(messageId: string): number {
    return this.#times.get(messageId) ?? 0
  }
}
