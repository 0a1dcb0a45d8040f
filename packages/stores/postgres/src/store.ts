import { randomUUID } from 'node:crypto'
import { type FailureClass, RedriveError } from '@redrive/core'
import { explainErrors, queryWithTimeout, sqlStateOf } from '@redrive/postgres-internal'
import {
  type DeadLetterStore,
  type ListQuery,
  parseStoredDeadLetter,
  type ReplayQuery,
  type ReplayResult,
  type SendAgain,
  type StoredDeadLetter,
  type StoreFilter,
  type StorePage,
  type StoreStats,
} from '@redrive/runtime'
import { SCHEMA } from './migrate.ts'
import type { ResolvedOptions } from './options.ts'
import { type Query, Saver } from './saver.ts'
import { CLAIM, CLEANUP, DELETE, FINISH, GET, LIST, RELEASE, RENEW, STATS } from './statements.ts'
import { escaped, unescaped } from './text.ts'

/** 200: a batch is read in pages, because its dead letters may be large. */
const PAGE = 200
/** Three renewals per lease: two may be late. */
const RENEWALS_PER_LEASE = 3
const DISK_FULL = '53100'

/** Position of a dead letter in the order of the store. */
type Position = readonly [savedAt: string, id: string]

const START: Position = ['-9223372036854775808', '']
const END = '9223372036854775807'

interface Row {
  readonly position: Position
  readonly content: string
}

export class PostgresStore implements DeadLetterStore {
  readonly #options: ResolvedOptions
  readonly #saver: Saver
  readonly #atWork = new Set<Promise<unknown>>()
  #isClosed = false

  constructor(options: ResolvedOptions) {
    this.#options = options
    this.#saver = new Saver(options, this.#query)
  }

  save(deadLetter: StoredDeadLetter): Promise<void> {
    return this.#work(() => this.#saver.save(deadLetter))
  }

  get(id: string): Promise<StoredDeadLetter | undefined> {
    return this.#work(async () => {
      const [row] = await this.#query(GET, [this.#options.name, escaped(id)])
      return row === undefined ? undefined : parseStoredDeadLetter(row[0] as string)
    })
  }

  list({ filter = {}, limit, cursor }: ListQuery): Promise<StorePage> {
    return this.#work(async () => {
      // One more, to check whether a next page exists.
      const rows = await this.#page(filter, readCursor(cursor), limit + 1)
      const page = rows.slice(0, limit)
      const last = page.at(-1)
      const hasMore = rows.length > limit && last !== undefined
      return {
        deadLetters: page.map(({ content }) => parseStoredDeadLetter(content)),
        nextCursor: hasMore ? writeCursor(last.position) : undefined,
      }
    })
  }

  replay(id: string, send: SendAgain): Promise<boolean> {
    return this.#work(() => this.#replay(escaped(id), send))
  }

  replayBatch(
    { filter = {}, limit, concurrency = 1 }: ReplayQuery,
    send: SendAgain,
  ): Promise<ReplayResult> {
    return this.#work(async () => {
      let [replayed, failed] = [0, 0]
      const waiting = this.#oldest(filter, limit)
      const work = async () => {
        for await (const { position } of waiting) {
          if (this.#isClosed) return
          let isRefused = false
          const sendOne: SendAgain = (deadLetter) =>
            send(deadLetter).catch((error: unknown) => {
              isRefused = true
              throw error
            })
          try {
            if (await this.#replay(position[1], sendOne)) replayed += 1
          } catch (error) {
            // A failure of the sink is counted. A failure of the server ends the batch.
            if (!isRefused) throw error
            failed += 1
          }
        }
      }
      await Promise.all(Array.from({ length: concurrency }, work))
      return { replayed, failed }
    })
  }

  delete(id: string): Promise<boolean> {
    return this.#work(async () => {
      const rows = await this.#query(DELETE, [this.#options.name, escaped(id)])
      return rows.length > 0
    })
  }

  stats(): Promise<StoreStats> {
    return this.#work(async () => statsOf(await this.#query(STATS, [this.#options.name])))
  }

  cleanup({ savedBefore }: { readonly savedBefore: number }): Promise<number> {
    return this.#work(async () => {
      let sum = 0
      let removed: number
      do {
        const rows = await this.#query(CLEANUP, [this.#options.name, Math.floor(savedBefore)])
        removed = rows.length
        sum += removed
      } while (removed > 0)
      return sum
    })
  }

  /** Waits for running saves and sends, so that the pool may be closed next. A batch ends early. */
  async close(): Promise<void> {
    this.#isClosed = true
    await Promise.allSettled(this.#atWork)
  }

  async #work<T>(work: () => Promise<T>): Promise<T> {
    if (this.#isClosed) throw closedError()
    const working = work()
    this.#atWork.add(working)
    try {
      return await working
    } finally {
      this.#atWork.delete(working)
    }
  }

  readonly #query: Query = async (text, values) => {
    const call = explainErrors(SCHEMA)
    try {
      return await call(() => queryWithTimeout<unknown[]>(this.#options.pool, text, values))
    } catch (error) {
      throw sqlStateOf(error) === DISK_FULL ? diskFull(error) : error
    }
  }

  async #page(
    { sink, type, class: failureClass, job, savedAfter, savedBefore }: StoreFilter,
    after: Position,
    limit: number,
  ): Promise<readonly Row[]> {
    const [afterAt, afterId] =
      savedAfter !== undefined && BigInt(after[0]) <= BigInt(Math.floor(savedAfter))
        ? lastAt(savedAfter)
        : after
    const before = savedBefore === undefined ? END : String(Math.ceil(savedBefore))
    const names = [sink, type, failureClass, job].map((one) =>
      one === undefined ? null : escaped(one),
    )
    const values = [this.#options.name, afterAt, afterId, before, ...names, limit]
    const rows = await this.#query(LIST, values)
    return rows.map(([savedAt, id, content]) => ({
      position: [savedAt as string, id as string],
      content: content as string,
    }))
  }

  async *#oldest(filter: StoreFilter, limit: number): AsyncGenerator<Row> {
    let after = START
    for (let left = limit; left > 0; left -= PAGE) {
      const rows = await this.#page(filter, after, Math.min(left, PAGE))
      yield* rows
      const last = rows.at(-1)
      if (last === undefined || rows.length < PAGE) return
      after = last.position
    }
  }

  /** Sends a dead letter under a claim, so that no two processes send the same one. */
  async #replay(id: string, send: SendAgain): Promise<boolean> {
    const { name, leaseMs } = this.#options
    const claim = [name, id, randomUUID()] as const
    const [claimed] = await this.#query(CLAIM, [...claim, leaseMs])
    if (claimed === undefined) return false
    const [content, version] = claimed as [string, string]
    const stop = this.#renew(claim)
    try {
      await send(parseStoredDeadLetter(content))
    } catch (error) {
      stop()
      // The caller needs the error of the sink. The claim ends with its lease.
      await this.#query(RELEASE, claim).catch(() => undefined)
      throw error
    }
    stop()
    const deleted = await this.#query(FINISH, [...claim, version])
    // It was saved again while it was sent, so it stays.
    if (deleted.length === 0) await this.#query(RELEASE, claim)
    return true
  }

  #renew(claim: readonly unknown[]): () => void {
    const { clock, leaseMs } = this.#options
    let isOver = false
    let cancel = (): void => undefined
    const wait = () => {
      if (!isOver) cancel = clock.after(leaseMs / RENEWALS_PER_LEASE, renew)
    }
    // A failed renewal is repaired by the next one. Nothing is lost if all fail.
    const renew = () => void this.#query(RENEW, [...claim, leaseMs]).then(wait, wait)
    wait()
    return () => {
      isOver = true
      cancel()
    }
  }
}

/** Returns a position after all dead letters that were saved at that time. */
const lastAt = (savedAt: number): Position => [String(Math.floor(savedAt)), '\u{10FFFF}']

const writeCursor = (position: Position): string =>
  Buffer.from(JSON.stringify(position)).toString('base64url')

function readCursor(cursor: string | undefined): Position {
  if (cursor === undefined) return START
  try {
    const [savedAt, id] = JSON.parse(Buffer.from(cursor, 'base64url').toString()) as unknown[]
    if (typeof savedAt === 'string' && /^-?\d+$/.test(savedAt) && typeof id === 'string') {
      return [savedAt, id]
    }
  } catch (cause) {
    throw invalidCursor(cursor, cause)
  }
  throw invalidCursor(cursor)
}

const invalidCursor = (cursor: string, cause?: unknown) =>
  new RedriveError(
    'PAYLOAD_INVALID',
    `cursor: "${cursor}" is not a cursor of this store. Use nextCursor of the previous page.`,
    cause === undefined ? {} : { cause },
  )

function statsOf(rows: readonly unknown[][]): StoreStats {
  let [count, bytes] = [0, 0]
  let oldestSavedAt: number | undefined
  const byClass: Partial<Record<FailureClass, number>> = {}
  const bySink: Record<string, number> = {}
  for (const [failureClass, sink, rowCount, rowBytes, oldest] of rows) {
    const known = failureClass as FailureClass
    const name = unescaped(sink as string)
    const here = Number(rowCount)
    count += here
    bytes += Number(rowBytes)
    oldestSavedAt = Math.min(oldestSavedAt ?? Number.POSITIVE_INFINITY, Number(oldest))
    byClass[known] = (byClass[known] ?? 0) + here
    bySink[name] = (bySink[name] ?? 0) + here
  }
  return { count, bytes, oldestSavedAt, byClass, bySink }
}

const closedError = () =>
  new RedriveError(
    'DLQ_CLOSED',
    'The PostgreSQL store is closed. Open another one with postgresStore().',
  )

const diskFull = (cause: unknown) =>
  new RedriveError(
    'DLQ_FULL',
    'The disk of the PostgreSQL server is full, so the dead letter was not stored. Free some space, or replay and delete dead letters.',
    { cause },
  )
