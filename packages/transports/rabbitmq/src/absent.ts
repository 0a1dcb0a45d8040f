/**
 * 1 s between two looks for a queue that is not there, doubling to a minute: each look closes a channel,
 * and the broker writes an error to its log.
 */
const LOOK_MS = 1_000
const LOOK_CAP_MS = 60_000

/** Says when to look again for a queue that was not there. */
export class Absent {
  #lookedAt = 0
  #waitMs = 0

  isDue(now: number): boolean {
    return now - this.#lookedAt >= this.#waitMs
  }

  note(isThere: boolean, now: number): void {
    this.#lookedAt = now
    this.#waitMs = isThere ? 0 : Math.min(LOOK_CAP_MS, this.#waitMs * 2 || LOOK_MS)
  }

  /** Someone may be about to make it. */
  expect(): void {
    this.#waitMs = Math.min(this.#waitMs, LOOK_MS)
  }
}
