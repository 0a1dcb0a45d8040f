/** 20 s: several times the slowest step on a busy machine. */
const PATIENCE_MS = 20_000

interface Waiter<T> {
  readonly look: () => T | undefined
  readonly resolve: (found: T) => void
  readonly reject: (error: Error) => void
}

/** A list of past events, and a way to wait for future ones. */
export class Happenings<T> {
  readonly #all: T[] = []
  readonly #waiters = new Set<Waiter<T>>()
  #end: Error | undefined

  get all(): readonly T[] {
    return this.#all
  }

  add(item: T): void {
    this.#all.push(item)
    for (const { look, resolve } of this.#waiters) {
      const found = look()
      if (found !== undefined) resolve(found)
    }
  }

  /** Ends the list, so that waiting callers get the error. */
  end(error: Error): void {
    this.#end = error
    for (const { reject } of this.#waiters) reject(error)
  }

  /** Returns the first matching event, or the `times`-th one. */
  async one(what: string, fits: (item: T) => boolean, times = 1): Promise<T> {
    const look = () => this.#all.filter(fits)[times - 1]
    const found = look()
    if (found !== undefined) return found
    if (this.#end !== undefined) throw this.#end
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    const waiter = { look, resolve, reject }
    const timer = setTimeout(
      () => reject(new Error(`Timed out while waiting until ${what}.`)),
      PATIENCE_MS,
    )
    this.#waiters.add(waiter)
    try {
      return await promise
    } finally {
      clearTimeout(timer)
      this.#waiters.delete(waiter)
    }
  }
}
