import { type FailureClass, RedriveError } from '@redrive/core'
import type {
  DeadLetterStore,
  ListQuery,
  ReplayResult,
  ReplayQuery,
  SendAgain,
  StoredDeadLetter,
  StoreFilter,
  StorePage,
  StoreStats,
} from '@redrive/runtime'

/** A dead-letter store in memory that records what was saved. */
export interface RecordingDeadLetters extends DeadLetterStore {
  /** Everything saved since the start or the last `clear`, oldest first. Includes entries that were replayed or deleted. */
  readonly events: readonly StoredDeadLetter[]
  /** Number of saved dead letters: `events.length`. */
  readonly count: number
  /** The dead letter that was saved last. */
  readonly last: StoredDeadLetter | undefined
  /** Deletes the records and the stored dead letters. */
  clear(): void
}

export interface RecordingDeadLettersOptions {
  /** Maximum number of dead letters; `save` then rejects with `DLQ_FULL`. Default: no limit. */
  readonly capacity?: number
}

/**
 * Creates a complete dead-letter store in memory that records what was saved.
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

/** Creates a dead-letter store that keeps nothing, for tests in which dead letters do not matter. */
export function noDeadLetters(): DeadLetterStore {
  let isClosed = false
  const resultUnlessClosed = <T>(value: T): Promise<T> =>
    isClosed ? Promise.reject(closedError()) : Promise.resolve(value)
  return {
    save: () => resultUnlessClosed(undefined),
    get: () => resultUnlessClosed(undefined),
    list: () => resultUnlessClosed({ deadLetters: [], nextCursor: undefined }),
    replay: () => resultUnlessClosed(false),
    replayBatch: () => resultUnlessClosed({ replayed: 0, failed: 0 }),
    delete: () => resultUnlessClosed(false),
    stats: () =>
      resultUnlessClosed({ count: 0, bytes: 0, oldestSavedAt: undefined, byClass: {}, bySink: {} }),
    cleanup: () => resultUnlessClosed(0),
    close: () => {
      isClosed = true
      return Promise.resolve()
    },
  }
}

class MemoryStore implements RecordingDeadLetters {
  readonly #capacity: number
  readonly #stored = new Map<string, StoredDeadLetter>()
  /** Replays in progress: a second replay of the same dead letter must not send it twice. */
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
    // The caller may reuse its buffer.
    const deadLetter = { ...given, event: { ...given.event, bytes: given.event.bytes.slice() } }
    if (!this.#stored.has(deadLetter.id) && this.#stored.size >= this.#capacity) {
      throw new RedriveError(
        'DLQ_FULL',
        `The store is full: it has ${this.#capacity} dead letters.`,
      )
    }
    this.#stored.set(deadLetter.id, deadLetter)
    this.#events.push(deadLetter)
  }

  async get(id: string): Promise<StoredDeadLetter | undefined> {
    this.#check()
    return this.#stored.get(id)
  }

  async list({ filter = {}, limit, cursor }: ListQuery): Promise<StorePage> {
    this.#check()
    const position = cursor === undefined ? undefined : readCursor(cursor)
    const rest = this.#sorted(filter).filter(
      (one) => position === undefined || inOrder(position, one) < 0,
    )
    const deadLetters = rest.slice(0, limit)
    const last = deadLetters.at(-1)
    const isMore = rest.length > deadLetters.length && last !== undefined
    return { deadLetters, nextCursor: isMore ? writeCursor(last) : undefined }
  }

  async replay(id: string, send: SendAgain): Promise<boolean> {
    this.#check()
    const deadLetter = this.#stored.get(id)
    if (deadLetter === undefined || this.#replaying.has(id)) return false
    this.#replaying.add(id)
    try {
      await send(deadLetter)
      // A dead letter that was saved again in the meantime has not been sent.
      if (this.#stored.get(id) === deadLetter) this.#stored.delete(id)
      return true
    } finally {
      this.#replaying.delete(id)
    }
  }

  async replayBatch(
    { filter = {}, limit, concurrency = 1 }: ReplayQuery,
    send: SendAgain,
  ): Promise<ReplayResult> {
    this.#check()
    const waiting = this.#sorted(filter).slice(0, limit).values()
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
    await Promise.all(Array.from({ length: concurrency }, work))
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

/** A position in the order that stays valid after its entry is deleted. */
type Position = Pick<StoredDeadLetter, 'savedAt' | 'id'>

function inOrder(one: Position, other: Position): number {
  if (one.savedAt !== other.savedAt) return one.savedAt - other.savedAt
  return one.id < other.id ? -1 : one.id > other.id ? 1 : 0
}

const writeCursor = ({ savedAt, id }: Position) =>
  Buffer.from(JSON.stringify([savedAt, id])).toString('base64url')

function readCursor(after: string): Position {
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
  new TypeError(
    `list: cursor "${after}" is not a cursor of this store. Pass "nextCursor" of a page.`,
    {
      cause,
    },
  )
