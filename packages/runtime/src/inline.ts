import type { Delivery } from '@redrive/core'
import type { Clock } from './clock.ts'
import type { Work } from './work.ts'

/** Retries that wait in this process for their time. */
export class InlineRetries<D extends Delivery> {
  readonly #clock: Clock
  readonly #cancels = new Map<Work<D>, () => void>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  get size(): number {
    return this.#cancels.size
  }

  hold(work: Work<D>, delayMs: number, onDue: () => void): void {
    const cancel = this.#clock.after(delayMs, () => {
      this.#cancels.delete(work)
      onDue()
    })
    this.#cancels.set(work, cancel)
  }

  /** Lets go of one before its time; undefined when it is not here. */
  take(delivery: D): Work<D> | undefined {
    for (const [work, cancel] of this.#cancels) {
      if (work.delivery !== delivery) continue
      cancel()
      this.#cancels.delete(work)
      return work
    }
    return undefined
  }

  /** Lets go of all before their time. */
  takeAll(): readonly Work<D>[] {
    const all = [...this.#cancels.keys()]
    for (const cancel of this.#cancels.values()) cancel()
    this.#cancels.clear()
    return all
  }
}
