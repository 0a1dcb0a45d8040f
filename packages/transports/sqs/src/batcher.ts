import type { EntryResult } from './requests.ts'
import { MAX_ENTRIES } from './requests.ts'

export interface BatcherOptions<T> {
  /** Sends up to ten entries. Returns the result of each; rejects when the request failed. */
  readonly send: (entries: readonly T[]) => Promise<readonly EntryResult[]>
  /** Bytes of an entry, where the limit of a request applies to all entries together. Default: 0. */
  readonly sizeOf?: (entry: T) => number
  /** Returns whether no other entry can come soon. Default: true. */
  readonly isComplete?: (waiting: number) => boolean
}

interface Waiting<T> {
  readonly entry: T
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}

/** 5 ms: messages that are settled shortly after one another share a request, which costs as much as one message. */
const GATHER_MS = 5
/** 1 MiB, the limit of SQS for all messages of a batch together. */
const MAX_BYTES = 1_048_576

/** Collects entries, and sends up to ten in one request. Each entry has its own result. */
export class Batcher<T> {
  readonly #options: BatcherOptions<T>
  #waiting: Waiting<T>[] = []
  #isPlanned = false
  #timer: NodeJS.Timeout | undefined

  constructor(options: BatcherOptions<T>) {
    this.#options = options
  }

  add(entry: T): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<undefined>()
    this.#waiting.push({ entry, resolve: () => resolve(undefined), reject })
    if (this.#waiting.length >= MAX_ENTRIES) this.#flush()
    else this.#plan()
    return promise
  }

  /** Sends at the end of this turn of the event loop, or a little later when more entries may come. */
  #plan(): void {
    if (this.#isPlanned) return
    this.#isPlanned = true
    setImmediate(() => {
      this.#isPlanned = false
      const count = this.#waiting.length
      if (count === 0) return
      if (this.#options.isComplete?.(count) ?? true) this.#flush()
      else this.#timer ??= setTimeout(() => this.#flush(), GATHER_MS)
    })
  }

  #flush(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const all = this.#waiting
    this.#waiting = []
    let some: Waiting<T>[] = []
    let bytes = 0
    for (const one of all) {
      const size = this.#options.sizeOf?.(one.entry) ?? 0
      if (some.length >= MAX_ENTRIES || (some.length > 0 && bytes + size > MAX_BYTES)) {
        void this.#send(some)
        some = []
        bytes = 0
      }
      some.push(one)
      bytes += size
    }
    if (some.length > 0) void this.#send(some)
  }

  async #send(some: readonly Waiting<T>[]): Promise<void> {
    try {
      const results = await this.#options.send(some.map(({ entry }) => entry))
      some.forEach(({ resolve, reject }, index) => {
        const error = results[index]
        if (error === undefined) resolve()
        else reject(error)
      })
    } catch (error) {
      for (const { reject } of some) reject(error)
    }
  }
}
