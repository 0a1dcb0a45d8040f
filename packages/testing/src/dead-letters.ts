import { type FailureClass, RedriveError } from '@redrive/core'
import type {
  DeadLetterStore,
  ListQuery,
  ReplayAnswer,
  ReplayQuery,
  SendAgain,
  StoredDeadLetter,
  StoreFilter,
  StorePage,
  StoreStats,
} from '@redrive/runtime'

/** A dead-letter store in memory that tells a test what it was given. */
export interface RecordingDeadLetters extends DeadLetterStore {
  /** Everything saved since the start or the last `clear`, oldest first, also what was replayed or deleted since. */
  readonly events: readonly StoredDeadLetter[]
  /** How many were saved: `events.length`. */
  readonly count: number
  /** The latest saved. */
  readonly last: StoredDeadLetter | undefined
  /** Forgets what was recorded and what is stored. */
  clear(): void
}

export interface RecordingDeadLettersOptions {
  /** Dead letters it holds at most; `save` then rejects with `DLQ_FULL`. Default: no bound. */
  readonly capacity?: number
}

/**
 * A complete dead-letter store that lives in memory and records what it was asked to keep.
 *
 * ```ts
 * const deadLetters = recordingDeadLetters()
 * // … run the code under test …
 * assert.equal(deadLetters.last?.failure.class, 'transient')
 * ```
 */
export function recordingDeadLetters(
  options: RecordingDeadLettersOptions = {},
): RecordingDeadLetters {
  return new MemoryStore(options.capacity ?? Number.POSITIVE_INFINITY)
}

/** A dead-letter store that keeps nothing: for tests in which dead letters do not matter. */
export function noDeadLetters(): DeadLetterStore {
  let isClosed = false
  const answer = <T>(value: T): Promise<T> =>
    isClosed ? Promise.reject(closedError()) : Promise.resolve(value)
  return {
    save: () => answer(undefined),
    get: () => answer(undefined),
    list: () => answer({ deadLetters: [], next: undefined }),
    replay: () => answer(false),
    replayBatch: () => answer({ replayed: 0, failed: 0 }),
    delete: () => answer(false),
    stats: () => answer({ count: 0, bytes: 0, oldestSavedAt: undefined, byClass: {}, bySink: {} }),
    cleanup: () => answer(0),
    close: () => {
      isClosed = true
      return Promise.resolve()
    },
  }
}

class MemoryStore implements RecordingDeadLetters {
  readonly #capacity: number
  readonly #stored = new Map<string, StoredDeadLetter>()
  /** On their way: a second replay of the same one must not send it twice. */
  readonly #replaying = new Set<string>()
  #events: StoredDeadLetter[] = []
  #isClosed = false

  constructor(capacity: number) {
    this.#capacity = capacity
  }

  get events(): readonly StoredDeadLetter[] {
    return this.#events
  }
  get count(): number {
    return this.#events.length
  }
  get last(): StoredDeadLetter | undefined {
    return this.#events.at(-1)
  }
  clear(): void {
    this.#events = []
    this.#stored.clear()
  }

  async save(given: StoredDeadLetter): Promise<void> {
    this.#check()
    // Whoever gave it may use its buffer again.
    const deadLetter = { ...given, event: { ...given.event, bytes: given.event.bytes.slice() } }
    if (!this.#stored.has(deadLetter.id) && this.#stored.size >= this.#capacity) {
      throw new RedriveError('DLQ_FULL', `The store holds ${this.#capacity} and takes no more.`)
    }
    this.#stored.set(deadLetter.id, deadLetter)
    this.#events.push(deadLetter)
  }

  async get(id: string): Promise<StoredDeadLetter | undefined> {
    this.#check()
    return this.#stored.get(id)
  }

  async list({ filter = {}, most, after }: ListQuery): Promise<StorePage> {
    this.#check()
    const cursor = after === undefined ? undefined : readCursor(after)
    const rest = this.#sorted(filter).filter(
      (one) => cursor === undefined || inOrder(cursor, one) < 0,
    )
    const deadLetters = rest.slice(0, most)
    const last = deadLetters.at(-1)
    const isMore = rest.length > deadLetters.length && last !== undefined
    return { deadLetters, next: isMore ? writeCursor(last) : undefined }
  }

  async replay(id: string, send: SendAgain): Promise<boolean> {
    this.#check()
    const deadLetter = this.#stored.get(id)
    if (deadLetter === undefined || this.#replaying.has(id)) return false
    this.#replaying.add(id)
    try {
      await send(deadLetter)
      // What was saved again meanwhile has not been sent.
      if (this.#stored.get(id) === deadLetter) this.#stored.delete(id)
      return true
    } finally {
      this.#replaying.delete(id)
    }
  }

  async replayBatch(
    { filter = {}, most, atOnce = 1 }: ReplayQuery,
    send: SendAgain,
  ): Promise<ReplayAnswer> {
    this.#check()
    const waiting = this.#sorted(filter).slice(0, most).values()
    let replayed = 0
    let failed = 0
    const work = async () => {
      for (const { id } of waiting) {
        try {
          if (await this.replay(id, send)) replayed += 1
        } catch {
          failed += 1
        }
      }
    }
    await Promise.all(Array.from({ length: atOnce }, work))
    return { replayed, failed }
  }

  async delete(id: string): Promise<boolean> {
    this.#check()
    return this.#stored.delete(id)
  }

  async stats(): Promise<StoreStats> {
    this.#check()
    const all = this.#sorted({})
    const byClass: Partial<Record<FailureClass, number>> = {}
    const bySink: Record<string, number> = {}
    let bytes = 0
    for (const { failure, sink, event } of all) {
      byClass[failure.class] = (byClass[failure.class] ?? 0) + 1
      bySink[sink] = (bySink[sink] ?? 0) + 1
      bytes += event.bytes.length
    }
    return { count: all.length, bytes, oldestSavedAt: all[0]?.savedAt, byClass, bySink }
  }

  async cleanup({ savedBefore }: { readonly savedBefore: number }): Promise<number> {
    this.#check()
    const old = this.#sorted({ savedBefore })
    for (const { id } of old) this.#stored.delete(id)
    return old.length
  }

  close(): Promise<void> {
    this.#isClosed = true
    return Promise.resolve()
  }

  #sorted(filter: StoreFilter): readonly StoredDeadLetter[] {
    return [...this.#stored.values()].filter((one) => fits(filter, one)).sort(inOrder)
  }

  #check(): void {
    if (this.#isClosed) throw closedError()
  }
}

const closedError = () => new RedriveError('DLQ_CLOSED', 'The dead-letter store is closed.')

function fits(filter: StoreFilter, deadLetter: StoredDeadLetter): boolean {
  const { sink, event, failure, job, savedAt } = deadLetter
  return (
    (filter.sink === undefined || filter.sink === sink) &&
    (filter.type === undefined || filter.type === event.type) &&
    (filter.class === undefined || filter.class === failure.class) &&
    (filter.job === undefined || filter.job === job) &&
    (filter.savedAfter === undefined || savedAt > filter.savedAfter) &&
    (filter.savedBefore === undefined || savedAt < filter.savedBefore)
  )
}

/** A place in the order that stays when what stood there is gone. */
type Place = Pick<StoredDeadLetter, 'savedAt' | 'id'>

function inOrder(one: Place, other: Place): number {
  if (one.savedAt !== other.savedAt) return one.savedAt - other.savedAt
  return one.id < other.id ? -1 : one.id > other.id ? 1 : 0
}

const writeCursor = ({ savedAt, id }: Place) =>
  Buffer.from(JSON.stringify([savedAt, id])).toString('base64url')

function readCursor(after: string): Place {
  try {
    const read: unknown = JSON.parse(Buffer.from(after, 'base64url').toString())
    if (Array.isArray(read) && typeof read[0] === 'number' && typeof read[1] === 'string') {
      return { savedAt: read[0], id: read[1] }
    }
  } catch (cause) {
    throw notACursor(after, cause)
  }
  throw notACursor(after)
}

const notACursor = (after: string, cause?: unknown) =>
  new TypeError(`list: ${after} is not a cursor of this store: pass \`next\` of a page`, { cause })
