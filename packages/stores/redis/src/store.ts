import { randomBytes } from 'node:crypto'
import { FAILURE_CLASSES, type FailureClass, RedriveError } from '@redrive/core'
import {
  type DeadLetterStore,
  type ListQuery,
  type ReplayResult,
  type ReplayQuery,
  parseStoredDeadLetter,
  type SendAgain,
  type StoredDeadLetter,
  type StoreFilter,
  type StorePage,
  type StoreStats,
  serializeStoredDeadLetter,
} from '@redrive/runtime'
import type { ResolvedOptions } from './options.ts'
import { endBefore, idOf, timeText, rangeOf, savedAtOf, writeCursor } from './cursor.ts'
import { type ReplayOutcome, Replayer } from './replay.ts'
import { CLEANUP, DELETE, GET, LIST, SAVE, STATS } from './scripts.ts'
import { Server } from './server.ts'

/** Removed by one script: about a millisecond in which the server is blocked. */
const MAX_REMOVED = 50
/** Checked by one script: also about a millisecond. */
const MAX_CHECKED = 200
/** 1 MiB of text in one response, and one more dead letter: other clients wait while it is written. */
const MAX_RESPONSE_BYTES = 1_048_576
/** Memory of one dead letter besides its text, facts and four times its id: measured with MEMORY USAGE. */
const OVERHEAD_BYTES = 450

export class RedisStore implements DeadLetterStore {
  readonly #options: ResolvedOptions
  readonly #server: Server
  readonly #replayer: Replayer
  /** Running sends. */
  readonly #sending = new Set<Promise<ReplayOutcome>>()
  #isClosed = false

  constructor(options: ResolvedOptions) {
    this.#options = options
    this.#server = new Server(options)
    this.#replayer = new Replayer(this.#server, options)
  }

  async save(deadLetter: StoredDeadLetter): Promise<void> {
    this.#check()
    const { retentionMs, maxEntries, maxBytes } = this.#options
    const text = serializeStoredDeadLetter(deadLetter)
    const facts = factsOf(deadLetter, text)
    const args = [retentionMs, deadLetter.id, facts, text, maxEntries, maxBytes, MAX_REMOVED]
    let result: unknown
    do result = await this.#server.run(SAVE, ...args)
    while (result === 'again')
    if (result === 'full') throw fullError(this.#options)
  }

  async get(id: string): Promise<StoredDeadLetter | undefined> {
    this.#check()
    const text = await this.#server.run(GET, id)
    return typeof text === 'string' ? parseStoredDeadLetter(text) : undefined
  }

  async list({ filter = {}, limit, cursor }: ListQuery): Promise<StorePage> {
    this.#check()
    const found: FoundEntry[] = []
    // One more, to check whether a next page exists.
    for await (const one of this.#find({ filter, after: cursor }, 'texts', limit + 1))
      found.push(one)
    const page = found.slice(0, limit)
    const last = page.at(-1)
    return {
      deadLetters: page.map(({ text }) => parseStoredDeadLetter(text)),
      nextCursor:
        found.length > limit && last !== undefined ? writeCursor(last.position) : undefined,
    }
  }

  async replay(id: string, send: SendAgain): Promise<boolean> {
    this.#check()
    const replayed = await this.#replay(id, send)
    if (replayed.kind === 'refused') throw replayed.error
    return replayed.kind === 'sent'
  }

  async replayBatch(
    { filter = {}, limit, concurrency = 1 }: ReplayQuery,
    send: SendAgain,
  ): Promise<ReplayResult> {
    this.#check()
    const waiting = this.#find({ filter, after: undefined }, 'places', limit)
    let replayed = 0
    let failed = 0
    const work = async () => {
      // When the server rejects, leaving this loop also ends `waiting` for the others.
      for await (const { position } of waiting) {
        if (this.#isClosed) break
        const { kind } = await this.#replay(idOf(position), send)
        if (kind === 'sent') replayed += 1
        if (kind === 'refused') failed += 1
      }
    }
    const ended = await Promise.allSettled(Array.from({ length: concurrency }, work))
    for (const end of ended) if (end.status === 'rejected') throw end.reason
    return { replayed, failed }
  }

  async delete(id: string): Promise<boolean> {
    this.#check()
    return (await this.#server.run(DELETE, id)) === 1
  }

  async stats(): Promise<StoreStats> {
    this.#check()
    let result: unknown
    // Null: there was more to trim than one script may remove.
    do result = await this.#server.run(STATS, MAX_REMOVED)
    while (result === null)
    return statsOf(result as readonly string[])
  }

  async cleanup({ savedBefore }: { readonly savedBefore: number }): Promise<number> {
    this.#check()
    let sum = 0
    let removed: number
    do {
      removed = Number(await this.#server.run(CLEANUP, endBefore(savedBefore), MAX_REMOVED))
      sum += Math.max(removed, 0)
    } while (removed < 0 || removed === MAX_REMOVED)
    return sum
  }

  /** Waits for running sends, so that the client may be closed next. A batch ends early. */
  async close(): Promise<void> {
    this.#isClosed = true
    await Promise.allSettled(this.#sending)
  }

  async #replay(id: string, send: SendAgain): Promise<ReplayOutcome> {
    const replaying = this.#replayer.replay(id, send)
    this.#sending.add(replaying)
    try {
      return await replaying
    } finally {
      this.#sending.delete(replaying)
    }
  }

  /** Returns matching entries, oldest first, in as many bounded steps as needed. */
  async *#find(
    { filter, after }: { readonly filter: StoreFilter; readonly after: string | undefined },
    what: 'texts' | 'places',
    most: number,
  ): AsyncGenerator<FoundEntry> {
    const { from, to } = rangeOf(filter, after)
    const wanted = JSON.stringify(partsOf(filter))
    let start = from
    for (let left = most; left > 0; ) {
      const count = Math.min(left, MAX_CHECKED)
      const result = await this.#server.run(
        LIST,
        ...[start, to, MAX_CHECKED, count, MAX_RESPONSE_BYTES, wanted, what],
      )
      const [next, ...found] = result as readonly [string, ...string[]]
      left -= found.length / 2
      for (let i = 0; i < found.length; i += 2) {
        yield { position: found[i] ?? '', text: found[i + 1] ?? '' }
      }
      if (next === '') return
      start = `(${next}`
    }
  }

  #check(): void {
    if (this.#isClosed)
      throw new RedriveError(
        'DLQ_CLOSED',
        'The Redis store is closed. Open another one with redisStore().',
      )
  }
}

interface FoundEntry {
  readonly position: string
  readonly text: string
}

/**
 * Returns the fields that scripts read. `save` identifies this save: a replay in progress must not delete a
 * later save of the same id. `bytes` comes last, because it counts the others.
 */
function factsOf(
  { id, sink, event, failure, job, savedAt }: StoredDeadLetter,
  text: string,
): string {
  const names = named({ sink, type: event.type, class: failure.class, job })
  const facts = { ...names, at: timeText(savedAt), save: newName() }
  const size = sizeOf(text) + sizeOf(JSON.stringify(facts)) + 4 * sizeOf(id)
  return JSON.stringify({ ...facts, bytes: size + OVERHEAD_BYTES })
}

const sizeOf = (text: string) => Buffer.byteLength(text)

/** Two saves of one id must differ; 48 bits are enough for that. */
const newName = () => randomBytes(6).toString('base64url')

/** Returns the parts that the facts of matching entries contain. */
const partsOf = ({ sink, type, class: failureClass, job }: StoreFilter): readonly string[] =>
  Object.entries(named({ sink, type, class: failureClass, job })).map(([name, value]) =>
    JSON.stringify({ [name]: value }).slice(1, -1),
  )

/** Replaces lone surrogates, which the server's Lua JSON rejects, in the usual way of UTF-8. */
function named(names: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const told: Record<string, string> = {}
  for (const [name, value] of Object.entries(names)) {
    if (value !== undefined) told[name] = value.toWellFormed()
  }
  return told
}

function statsOf([first = '', ...pairs]: readonly string[]): StoreStats {
  const totals = new Map<string, number>()
  for (let i = 0; i < pairs.length; i += 2) totals.set(pairs[i] ?? '', Number(pairs[i + 1]))
  const byClass: Partial<Record<FailureClass, number>> = {}
  for (const one of FAILURE_CLASSES) {
    const count = totals.get(`class:${one}`)
    if (count !== undefined) byClass[one] = count
  }
  const sinks = [...totals].filter(([name]) => name.startsWith('sink:'))
  return {
    count: totals.get('count') ?? 0,
    bytes: totals.get('bytes') ?? 0,
    oldestSavedAt: first === '' ? undefined : savedAtOf(first),
    byClass,
    bySink: Object.fromEntries(sinks.map(([name, count]) => [name.slice('sink:'.length), count])),
  }
}

const fullError = ({ maxEntries, maxBytes }: ResolvedOptions) =>
  new RedriveError(
    'DLQ_FULL',
    `The store is full: its limits are ${maxEntries} dead letters and ${maxBytes} bytes. Replay or delete some, or increase "maxEntries" or "maxBytes".`,
  )
