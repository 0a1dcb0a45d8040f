/** Counts the events of a sink in flight: queued, waiting or being sent. Callers can wait for room or for none. */
export class EventsInFlight {
  readonly #limit: number
  readonly #onRoom: (() => void)[] = []
  readonly #onNone: (() => void)[] = []
  count = 0

  constructor(limit: number) {
    this.#limit = limit
  }

  get hasRoom(): boolean {
    return this.count < this.#limit
  }

  remove(count: number): void {
    this.count -= count
    for (const resolve of this.#onRoom.splice(0, count)) resolve()
    if (this.count === 0) for (const resolve of this.#onNone.splice(0)) resolve()
  }

  /** Resolves when an event was removed, so that there may be room, or after `stopWaiting`. */
  whenRemoved(): Promise<void> {
    return new Promise((resolve) => this.#onRoom.push(resolve))
  }

  stopWaiting(): void {
    for (const resolve of this.#onRoom.splice(0)) resolve()
  }

  whenNone(): Promise<void> {
    if (this.count === 0) return Promise.resolve()
    return new Promise((resolve) => this.#onNone.push(resolve))
  }
}
