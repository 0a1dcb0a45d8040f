/**
 * 1 s between two checks for a missing queue, doubled up to 60 s. Each check closes a channel, and the
 * broker logs an error for it.
 */
const CHECK_MS = 1_000
const CHECK_CAP_MS = 60_000

/** Decides when to check again for a queue that did not exist. */
export class MissingQueueBackoff {
  #checkedAt = 0
  #waitMs = 0

  isDue(now: number): boolean {
    return now - this.#checkedAt >= this.#waitMs
  }

  note(exists: boolean, now: number): void {
    this.#checkedAt = now
    this.#waitMs = exists ? 0 : Math.min(CHECK_CAP_MS, this.#waitMs * 2 || CHECK_MS)
  }

  /** Shortens the wait, because a consumer may soon declare the queue. */
  expect(): void {
    this.#waitMs = Math.min(this.#waitMs, CHECK_MS)
  }
}
