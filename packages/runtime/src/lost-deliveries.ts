/** 1,000 messages: more than any prefetch that returns after a lost connection. */
const MAX_MESSAGES = 1_000

/**
 * Deliveries lost while their handler ran and this process stayed alive. The broker counts them, but
 * they are no crashes.
 */
export class LostDeliveries {
  readonly #times = new Map<string, number>()

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
