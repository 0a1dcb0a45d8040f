import type { Delivery } from '@redrive/core'

/** 10,000 messages: more than any prefetch that returns after a lost connection. */
const MAX_MESSAGES = 10_000

/**
 * Deliveries lost while this process stayed alive. The broker counts them, but they are no crashes.
 */
export class LostDeliveries<D extends Delivery> {
  readonly #newlyLost = new Set<D>()
  readonly #times = new Map<string, number>()

  /** Collects deliveries that are lost together, as with a connection, and handles all of them in one pass. */
  collect(delivery: D, onLost: (lost: ReadonlySet<D>) => void): void {
    const isFirst = this.#newlyLost.size === 0
    this.#newlyLost.add(delivery)
    if (!isFirst) return
    queueMicrotask(() => {
      const lost = new Set(this.#newlyLost)
      this.#newlyLost.clear()
      onLost(lost)
    })
  }

  add(messageId: string): void {
    const times = this.count(messageId) + 1
    // Deleted first, so that the map is ordered by the last loss.
    this.#times.delete(messageId)
    this.#times.set(messageId, times)
    const [oldest] = this.#times.keys()
    if (this.#times.size > MAX_MESSAGES && oldest !== undefined) this.#times.delete(oldest)
  }

  count(messageId: string): number {
    return this.#times.get(messageId) ?? 0
  }
}
