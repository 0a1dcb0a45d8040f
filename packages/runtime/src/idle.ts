import type { Clock } from './clock.ts'

/** Waits until the consumer has nothing left to do: no handler runs and no hand-off is in progress. */
export class Idle {
  readonly #clock: Clock
  readonly #isBusy: () => boolean
  #resolve: (() => void) | undefined

  constructor(clock: Clock, isBusy: () => boolean) {
    this.#clock = clock
    this.#isBusy = isBusy
  }

  /** Resolves when the consumer is idle, or when the time has passed. */
  wait(withinMs: number): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#clock.after(withinMs, () => this.#resolve?.())
      this.#resolve = () => {
        this.#resolve = undefined
        cancel()
        resolve()
      }
      this.check()
    })
  }

  /** Call after each change that may make the consumer idle. Costs nothing while no caller waits. */
  readonly check = (): void => {
    if (this.#resolve !== undefined && !this.#isBusy()) this.#resolve()
  }
}
