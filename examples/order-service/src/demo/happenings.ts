/** 20 s: several times what the slowest step takes on a busy machine. */
const PATIENCE_MS = 20_000

interface Waiter<T> {
  readonly look: () => T | undefined
  readonly resolve: (found: T) => void
  readonly reject: (error: Error) => void
}

/** What has happened so far, and a way to wait for what will. */
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

  /** Nothing more will happen: nobody waits in vain. */
  end(error: Error): void {
    this.#end = error
    for (const { reject } of this.#waiters) reject(error)
  }

  /** The first one that fits, or the one after so many that do. */
  async one(what: string, fits: (item: T) => boolean, times = 1): Promise<T> {
    const look = () => this.#all.filter(fits)[times - 1]
    const found = look()
    if (found !== undefined) return found
    if (this.#end !== undefined) throw this.#end
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    const waiter = { look, resolve, reject }
    const timer = setTimeout(() => reject(new Error(`Waited in vain until ${what}.`)), PATIENCE_MS)
    this.#waiters.add(waiter)
    try {
      return await promise
    } finally {
      clearTimeout(timer)
      this.#waiters.delete(waiter)
    }
  }
}
