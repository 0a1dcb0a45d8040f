import { RedriveError } from '@redrive/core'
import { serializeStoredDeadLetter, type StoredDeadLetter } from '@redrive/runtime'
import type { ResolvedOptions } from './options.ts'
import { COUNT_OTHERS, SAVE } from './statements.ts'
import { escaped } from './text.ts'

/** 500 rows or 4 MB in one statement: more is not faster, and the first save waits for the last. */
const MAX_ROWS = 500
const MAX_BYTES = 4 * 2 ** 20

export type Query = (text: string, values: readonly unknown[]) => Promise<readonly unknown[][]>

interface Waiting {
  readonly id: string
  readonly deadLetter: StoredDeadLetter
  readonly content: string
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}

/** Saves dead letters. Dead letters that arrive during a statement share the next one. */
export class Saver {
  readonly #options: ResolvedOptions
  readonly #query: Query
  readonly #waiting: Waiting[] = []
  #isRunning = false
  /** Dead letters that fit before the rows are counted again. */
  #room = 0

  constructor(options: ResolvedOptions, query: Query) {
    this.#options = options
    this.#query = query
  }

  save(deadLetter: StoredDeadLetter): Promise<void> {
    // Before any wait: the caller may reuse its buffer.
    const content = serializeStoredDeadLetter(deadLetter)
    return new Promise((resolve, reject) => {
      this.#waiting.push({ id: escaped(deadLetter.id), deadLetter, content, resolve, reject })
      if (!this.#isRunning) void this.#run()
    })
  }

  async #run(): Promise<void> {
    this.#isRunning = true
    while (this.#waiting.length > 0) {
      const batch = this.#take()
      try {
        await this.#write(batch)
        for (const { resolve } of batch) resolve()
      } catch (error) {
        for (const { reject } of batch) reject(error)
      }
    }
    this.#isRunning = false
  }

  /** Takes the next batch. A statement cannot save an id twice. */
  #take(): readonly Waiting[] {
    const ids = new Set<string>()
    let [count, bytes] = [0, 0]
    for (const { id, content } of this.#waiting) {
      if (count === MAX_ROWS || ids.has(id) || (count > 0 && bytes + content.length > MAX_BYTES))
        break
      ids.add(id)
      count += 1
      bytes += content.length
    }
    return this.#waiting.splice(0, count)
  }

  async #write(batch: readonly Waiting[]): Promise<void> {
    await this.#checkRoom(batch)
    const column = <T>(read: (one: Waiting) => T) => batch.map(read)
    await this.#query(SAVE, [
      this.#options.name,
      column(({ id }) => id),
      column(({ deadLetter }) => deadLetter.savedAt),
      column(({ deadLetter }) => escaped(deadLetter.sink)),
      column(({ deadLetter }) => escaped(deadLetter.event.type)),
      column(({ deadLetter }) => deadLetter.failure.class),
      column(({ deadLetter }) => (deadLetter.job === undefined ? null : escaped(deadLetter.job))),
      column(({ content }) => Buffer.byteLength(content)),
      column(({ content }) => content),
    ])
    this.#room -= batch.length
  }

  /** Counts rows again when half of the known room is used, because a count reads all of them. */
  async #checkRoom(batch: readonly Waiting[]): Promise<void> {
    if (this.#room >= batch.length) return
    const { name, maxEntries } = this.#options
    const [row] = await this.#query(COUNT_OTHERS, [name, batch.map(({ id }) => id), maxEntries])
    const left = maxEntries - Number(row?.[0] ?? 0)
    if (left < batch.length) throw fullError(this.#options)
    this.#room = Math.max(batch.length, Math.floor(left / 2))
  }
}

const fullError = ({ name, maxEntries }: ResolvedOptions) =>
  new RedriveError(
    'DLQ_FULL',
    `The store "${name}" is full: its limit is ${maxEntries} dead letters. Replay or delete some, or increase "maxEntries".`,
  )
