import type { QueuedEvent } from './result.ts'

/** Counts the events of a sink in flight: queued, waiting or being sent. Events above the limit wait for room. */
export class EventsInFlight {
  readonly #limit: number
  readonly #waiting = new Set<QueuedEvent>()
  readonly #onNone: (() => void)[] = []
  count = 0

  constructor(limit: number) {
    this.#limit = limit
  }

  get hasRoom(): boolean {
    return this.count < this.#limit
  }

  waitForRoom(queuedEvent: QueuedEvent): void {
    this.#waiting.add(queuedEvent)
  }

  /** Removes events. Returns those that take their place. */
  remove(count: number): readonly QueuedEvent[] {
    const entering: QueuedEvent[] = []
    for (const one of this.#waiting) {
      if (entering.length === count) break
      entering.push(one)
      this.#waiting.delete(one)
    }
    this.count += entering.length - count
    if (this.count === 0) for (const resolve of this.#onNone.splice(0)) resolve()
    return entering
  }

  /** Removes and returns the events that wait for room and match. */
  removeWaiting(matches: (queuedEvent: QueuedEvent) => boolean): readonly QueuedEvent[] {
    const removed = [...this.#waiting].filter(matches)
    for (const one of removed) this.#waiting.delete(one)
    return removed
  }

  whenNone(): Promise<void> {
    if (this.count === 0) return Promise.resolve()
    return new Promise((resolve) => this.#onNone.push(resolve))
  }
}
