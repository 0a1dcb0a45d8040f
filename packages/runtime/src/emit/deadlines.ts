import type { Clock } from '../clock.ts'
import type { QueuedEvent } from './result.ts'

/** The events that wait for a sink, with one timer for the first deadline. */
export class Deadlines {
  readonly #clock: Clock
  /** Called when at least one event waited until its deadline. */
  readonly #onOverdue: () => void
  /** Oldest first. The maximum wait is the same for all, so the first one has the first deadline. */
  readonly #waiting = new Set<QueuedEvent>()
  #cancel: (() => void) | undefined

  constructor(clock: Clock, onOverdue: () => void) {
    this.#clock = clock
    this.#onOverdue = onOverdue
  }

  add(queuedEvent: QueuedEvent): void {
    this.#waiting.add(queuedEvent)
    this.#wait()
  }

  remove(queuedEvents: readonly QueuedEvent[]): void {
    for (const one of queuedEvents) this.#waiting.delete(one)
    // A timer without events would keep the process alive.
    if (this.#waiting.size === 0) this.#stopTimer()
  }

  #wait(): void {
    const [first] = this.#waiting
    if (first === undefined || this.#cancel !== undefined) return
    const delayMs = Math.max(0, first.deadline - this.#clock.now())
    this.#cancel = this.#clock.after(delayMs, () => {
      this.#cancel = undefined
      if (first.deadline <= this.#clock.now() && this.#waiting.has(first)) this.#onOverdue()
      this.#wait()
    })
  }

  #stopTimer(): void {
    this.#cancel?.()
    this.#cancel = undefined
  }
}
