import { setImmediate as nextLoopTurn } from 'node:timers/promises'

/** Runs one turn at a time. All requests during a turn lead to one more turn. */
export class TurnLoop {
  readonly #turn: () => Promise<void>
  #running: Promise<void> | undefined
  #isRequested = false
  #isStopped = false
  #afterTurn: (() => Promise<void>)[] = []

  /** The turn must not reject. */
  constructor(turn: () => Promise<void>) {
    this.#turn = turn
  }

  request(): void {
    this.#isRequested = true
    this.#running ??= this.#run()
  }

  /** Runs work that must not run at the same time as a turn. */
  runAfterTurn<T>(work: () => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#afterTurn.push(() => work().then(resolve, reject))
      this.request()
    })
  }

  /** The turns that run now. Undefined: none. */
  get running(): Promise<void> | undefined {
    return this.#running
  }

  /** No turn starts any more. */
  stop(): void {
    this.#isStopped = true
  }

  async #run(): Promise<void> {
    try {
      while (this.#isRequested) {
        // Deliveries that handlers finish in this turn of the event loop are included.
        await nextLoopTurn()
        this.#isRequested = false
        if (this.#isStopped) return
        await this.#turn()
        for (const work of this.#afterTurn.splice(0)) await work()
      }
    } finally {
      // Synchronous with the last check of the flag, so that the next request starts a new loop.
      this.#running = undefined
    }
  }
}
