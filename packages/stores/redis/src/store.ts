import { randomBytes } from 'node:crypto'
import { FAILURE_CLASSES, type FailureClass, RedriveError } from '@redrive/core'
import {
  type DeadLetterStore,
  type ListQuery,
  type ReplayAnswer,
  type ReplayQuery,
  readStored,
  type SendAgain,
  type StoredDeadLetter,
  type StoreFilter,
  type StorePage,
  type StoreStats,
  writeStored,
} from '@redrive/runtime'
import type { ResolvedOptions } from './options.ts'
import { endBefore, idOf, momentOf, rangeOf, savedAtOf, writeCursor } from './place.ts'
import { type Replayed, Replayer } from './replay.ts'
import { CLEANUP, DELETE, GET, LIST, SAVE, STATS } from './scripts.ts'
import { Server } from './server.ts'

/** Removed by one script: about a millisecond in which the server does nothing else. */
const MOST_REMOVED = 50
/** Looked at by one script: about a millisecond, too. */
const MOST_LOOKED_AT = 200
/** 1 MiB of text in one answer, and one dead letter more: others wait while it is written. */
const MOST_ANSWERED_BYTES = 1_048_576
/** What the server needs for one besides its text, facts and four times its id: measured with MEMORY USAGE. */
const OVERHEAD_BYTES = 450

export class RedisStore implements DeadLetterStore {
  readonly #options: ResolvedOptions
  readonly #server: Server
  readonly #replayer: Replayer
  /** What is being sent. */
  readonly #underWay = new Set<Promise<Replayed>>()
  #isClosed = false

  constructor(options: ResolvedOptions) {
    this.#options = options
    this.#server = new Server(options)
    this.#replayer = new Replayer(this.#server, options)
  }

  async save(deadLetter: StoredDeadLetter): Promise<void> {
    this.#check()
    const { retentionMs, maxEntries, maxBytes } = this.#options
    const text = writeStored(deadLetter)
    const facts = factsOf(deadLetter, text)
    const args = [retentionMs, deadLetter.id, facts, text, maxEntries, maxBytes, MOST_REMOVED]
    let answer: unknown
    do answer = await this.#server.run(SAVE, ...args)
    while (answer === 'again')
    if (answer === 'full') throw fullError(this.#options)
  }

  async get(id: string): Promise<StoredDeadLetter | undefined> {
    this.#check()
    const text = await this.#server.run(GET, id)
    return typeof text === 'string' ? readStored(text) : undefined
  }

  async list({ filter = {}, most, after }: ListQuery): Promise<StorePage> {
    this.#check()
    const found: Found[] = []
    // One more, to know whether there is a next page.
    for await (const one of this.#find({ filter, after }, 'texts', most + 1)) found.push(one)
    const page = found.slice(0, most)
    const last = page.at(-1)
    return {
      deadLetters: page.map(({ text }) => readStored(text)),
      next: found.length > most && last !== undefined ? writeCursor(last.place) : undefined,
    }
  }

  async replay(id: string, send: SendAgain): Promise<boolean> {
    this.#check()
    const replayed = await this.#replay(id, send)
    if (replayed.kind === 'refused') throw replayed.error
    return replayed.kind === 'sent'
  }

  async replayBatch(
    { filter = {}, most, atOnce = 1 }: ReplayQuery,
    send: SendAgain,
  ): Promise<ReplayAnswer> {
    this.#check()
    const waiting = this.#find({ filter, after: undefined }, 'places', most)
    let replayed = 0
    let failed = 0
    const work = async () => {
      // When the server rejects, leaving this loop ends `waiting` for the others, too.
      for await (const { place } of waiting) {
        if (this.#isClosed) break
        const { kind } = await this.#replay(idOf(place), send)
        if (kind === 'sent') replayed += 1
        if (kind === 'refused') failed += 1
      }
    }
    const ended = await Promise.allSettled(Array.from({ length: atOnce }, work))
    for (const end of ended) if (end.status === 'rejected') throw end.reason
    return { replayed, failed }
  }

  async delete(id: string): Promise<boolean> {
    this.#check()
    return (await this.#server.run(DELETE, id)) === 1
  }

  async stats(): Promise<StoreStats> {
    this.#check()
    let answer: unknown
    // Null: there was more to trim than one script may.
    do answer = await this.#server.run(STATS, MOST_REMOVED)
    while (answer === null)
    return statsOf(answer as readonly string[])
  }

  async cleanup({ savedBefore }: { readonly savedBefore: number }): Promise<number> {
    this.#check()
    let sum = 0
    let removed: number
    do {
      removed = Number(await this.#server.run(CLEANUP, endBefore(savedBefore), MOST_REMOVED))
      sum += Math.max(removed, 0)
    } while (removed < 0 || removed === MOST_REMOVED)
    return sum
  }

  /** Waits for what is being sent, so that the client may be closed next. A batch ends with what it has. */
  async close(): Promise<void> {
    this.#isClosed = true
    await Promise.allSettled(this.#underWay)
  }

  async #replay(id: string, send: SendAgain): Promise<Replayed> {
    const replaying = this.#replayer.replay(id, send)
    this.#underWay.add(replaying)
    try {
      return await replaying
    } finally {
      this.#underWay.delete(replaying)
    }
  }

  /** Oldest first, in as many bounded pieces as it takes. */
  async *#find(
    { filter, after }: { readonly filter: StoreFilter; readonly after: string | undefined },
    what: 'texts' | 'places',
    most: number,
  ): AsyncGenerator<Found> {
    const { from, to } = rangeOf(filter, after)
    const wanted = JSON.stringify(partsOf(filter))
    let start = from
    for (let left = most; left > 0; ) {
      const count = Math.min(left, MOST_LOOKED_AT)
      const answer = await this.#server.run(
        LIST,
        ...[start, to, MOST_LOOKED_AT, count, MOST_ANSWERED_BYTES, wanted, what],
      )
      const [next, ...found] = answer as readonly [string, ...string[]]
      left -= found.length / 2
      for (let i = 0; i < found.length; i += 2) {
        yield { place: found[i] ?? '', text: found[i + 1] ?? '' }
      }
      if (next === '') return
      start = `(${next}`
    }
  }

  #check(): void {
    if (this.#isClosed) throw new RedriveError('DLQ_CLOSED', 'The dead-letter store is closed.')
  }
}

interface Found {
  readonly place: string
  readonly text: string
}

/**
 * What scripts read. `save` names this one: a replay that was under way must not take a later one of the
 * same id for its own. `bytes` comes last, because it counts the others.
 */
function factsOf(
  { id, sink, event, failure, job, savedAt }: StoredDeadLetter,
  text: string,
): string {
  const names = named({ sink, type: event.type, class: failure.class, job })
  const facts = { ...names, at: momentOf(savedAt), save: newName() }
  const size = sizeOf(text) + sizeOf(JSON.stringify(facts)) + 4 * sizeOf(id)
  return JSON.stringify({ ...facts, bytes: size + OVERHEAD_BYTES })
}

const sizeOf = (text: string) => Buffer.byteLength(text)

/** Two saves of one id must differ, no more: 48 bits are plenty. */
const newName = () => randomBytes(6).toString('base64url')

/** What the facts of those that fit contain. */
const partsOf = ({ sink, type, class: failureClass, job }: StoreFilter): readonly string[] =>
  Object.entries(named({ sink, type, class: failureClass, job })).map(([name, value]) =>
    JSON.stringify({ [name]: value }).slice(1, -1),
  )

/** Half a character, which the JSON of the server's Lua does not know, is written as everywhere else in UTF-8. */
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
    `The store takes no more than ${maxEntries} dead letters and ${maxBytes} bytes. Replay or delete some, or raise maxEntries or maxBytes.`,
  )
