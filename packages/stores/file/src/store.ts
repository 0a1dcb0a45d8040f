import { RedriveError } from '@redrive/core'
import {
  type DeadLetterStore,
  type ListQuery,
  type ReplayResult,
  type ReplayQuery,
  type SendAgain,
  type StoredDeadLetter,
  type StoreFilter,
  type StorePage,
  type StoreStats,
  serializeStoredDeadLetter,
} from '@redrive/runtime'
import { Claims } from './claims.ts'
import { cleanUp } from './cleanup.ts'
import { readCursor } from './cursor.ts'
import { Entries } from './entries.ts'
import { closedError, diskError } from './errors.ts'
import { hashOfId } from './hashing.ts'
import { deleteJob, saveJob } from './jobs.ts'
import { DirectoryScanner } from './directory-scanner.ts'
import type { ResolvedOptions } from './options.ts'
import { firstOf, pageOf, type Read } from './pages.ts'
import { readAll } from './reader.ts'
import type { Ref } from './segment.ts'
import { positionOf } from './walk.ts'
import { Writer } from './writer.ts'

/** 64 MB: seconds of a slow disk. A caller that saves faster gets an error. */
const MAX_WAITING_BYTES = 64 * 2 ** 20
/** A batch is read in pieces of this size, because it may contain millions. */
const BATCH_PAGE = 100

/** A dead-letter store in files. */
export interface FileStore extends DeadLetterStore {
  /** Removes dead letters saved before that time, or older than the retention; returns how many. */
  cleanup(options?: { readonly savedBefore?: number }): Promise<number>
}

export class Store implements FileStore {
  readonly #options: ResolvedOptions
  readonly #entries = new Entries()
  readonly #scanner: DirectoryScanner
  readonly #writer: Writer
  readonly #claims: Claims
  readonly #atWork = new Set<Promise<unknown>>()
  #waitingBytes = 0
  #isKnown = false
  #closing: Promise<void> | undefined

  constructor(options: ResolvedOptions) {
    const { directory, clock, leaseMs } = options
    this.#options = options
    this.#scanner = new DirectoryScanner(directory, this.#entries, clock)
    this.#writer = new Writer(options, this.#entries)
    this.#claims = new Claims(directory, leaseMs, clock)
  }

  save(deadLetter: StoredDeadLetter): Promise<void> {
    return this.#work(async () => {
      // Before any wait: the caller may reuse its buffer.
      const line = Buffer.from(`${serializeStoredDeadLetter(deadLetter)}\n`)
      this.#waitingBytes += line.length
      try {
        if (!this.#isKnown) await this.#scan()
        await this.#checkRoom(deadLetter.id, line.length)
        await this.#writer.append(saveJob(this.#entries, deadLetter, line))
      } finally {
        this.#waitingBytes -= line.length
      }
    })
  }

  get(id: string): Promise<StoredDeadLetter | undefined> {
    return this.#work(async () => {
      await this.#scan()
      const ref = this.#entries.find(hashOfId(id))
      return ref && (await this.#read([ref]))[0]
    })
  }

  list({ filter = {}, limit, cursor }: ListQuery): Promise<StorePage> {
    return this.#work(async () => {
      const position = cursor === undefined ? undefined : readCursor(cursor)
      await this.#scan()
      return pageOf(this.#entries, this.#read, { filter, limit }, position)
    })
  }

  replay(id: string, send: SendAgain): Promise<boolean> {
    return this.#work(() => this.#replay(id, send))
  }

  replayBatch(
    { filter = {}, limit, concurrency = 1 }: ReplayQuery,
    send: SendAgain,
  ): Promise<ReplayResult> {
    return this.#work(async () => {
      let replayed = 0
      let failed = 0
      const waiting = this.#oldest(filter, limit)
      const work = async () => {
        for await (const { id } of waiting) {
          // The rest stays: close waits only for running sends.
          if (this.#closing !== undefined) return
          try {
            if (await this.#replay(id, send)) replayed += 1
          } catch {
            // Counted, and it stays. The error of `send` is not needed here.
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
      await this.#scan()
      return this.#erase(this.#entries.all(hashOfId(id)))
    })
  }

  stats(): Promise<StoreStats> {
    return this.#work(async () => {
      await this.#scan()
      const [oldest] = firstOf(this.#entries, {}, 1)
      return this.#entries.stats(oldest && positionOf(oldest).savedAt)
    })
  }

  cleanup(options: { readonly savedBefore?: number } = {}): Promise<number> {
    const { clock, retentionMs } = this.#options
    const { savedBefore = clock.now() - retentionMs } = options
    return this.#work(async () => {
      await this.#scan()
      const count = await cleanUp(this.#options, this.#entries, this.#writer, savedBefore)
      await this.#claims.tidy()
      return count
    })
  }

  /** Waits for running saves and sends, and closes the file. */
  close(): Promise<void> {
    this.#closing ??= Promise.allSettled(this.#atWork).then(() => this.#writer.seal())
    return this.#closing
  }

  async #work<T>(work: () => Promise<T>): Promise<T> {
    if (this.#closing !== undefined) throw closedError()
    const working = work()
    this.#atWork.add(working)
    try {
      return await working
    } finally {
      this.#atWork.delete(working)
    }
  }

  async #scan(): Promise<void> {
    await this.#disk(() => this.#scanner.scan())
    this.#isKnown = true
  }

  async #checkRoom(id: string, bytes: number): Promise<void> {
    const { maxBytes, directory } = this.#options
    if (this.#waitingBytes > MAX_WAITING_BYTES && this.#waitingBytes > bytes) {
      const message = `Dead letters arrive faster than the disk of "${directory}" can store them. Emit fewer events, use fsync: 'never', or use a faster disk.`
      throw new RedriveError('DLQ_FULL', message)
    }
    if (this.#fits(id, maxBytes)) return
    // Other processes may have made room.
    await this.#scan()
    if (this.#fits(id, maxBytes)) return
    const message = `The dead letters in "${directory}" have reached ${maxBytes} bytes. Replay or delete some, call cleanup(), or increase "maxBytes".`
    throw new RedriveError('DLQ_FULL', message)
  }

  /** Counts all waiting writes, including this one. A replaced line frees its bytes. */
  #fits(id: string, maxBytes: number): boolean {
    if (maxBytes === Number.POSITIVE_INFINITY) return true
    const known = this.#entries.find(hashOfId(id))
    const freed = known === undefined ? 0 : (known.segment.rows.length[known.row] ?? 0)
    return this.#entries.bytes - freed + this.#waitingBytes <= maxBytes
  }

  async *#oldest(filter: StoreFilter, limit: number): AsyncGenerator<StoredDeadLetter> {
    let after: string | undefined
    for (let left = limit; left > 0; left -= BATCH_PAGE) {
      await this.#scan()
      const position = after === undefined ? undefined : readCursor(after)
      const query = { filter, limit: Math.min(left, BATCH_PAGE) }
      const page = await pageOf(this.#entries, this.#read, query, position)
      yield* page.deadLetters
      if (page.nextCursor === undefined) return
      after = page.nextCursor
    }
  }

  async #replay(id: string, send: SendAgain): Promise<boolean> {
    const hash = hashOfId(id)
    await this.#scan()
    if (this.#entries.find(hash) === undefined) return false
    const release = await this.#disk(() => this.#claims.take(hash))
    if (release === undefined) return false
    try {
      // The previous owner of the claim may have sent it.
      await this.#scan()
      const refs = this.#entries.all(hash)
      const ref = this.#entries.find(hash)
      const deadLetter = ref && (await this.#read([ref]))[0]
      if (deadLetter === undefined) return false
      await send(deadLetter)
      await this.#erase(refs)
      return true
    } finally {
      await release()
    }
  }

  /** Deletes lines. Returns whether any of them was live. */
  async #erase(refs: readonly Ref[]): Promise<boolean> {
    if (refs.length === 0) return false
    const job = deleteJob(this.#entries, refs)
    await this.#writer.append(job)
    return job.wasLive()
  }

  readonly #read: Read = (refs) => this.#disk(() => readAll(this.#options.directory, refs))

  async #disk<T>(act: () => Promise<T>): Promise<T> {
    try {
      return await act()
    } catch (cause) {
      throw diskError(this.#options.directory, cause)
    }
  }
}
