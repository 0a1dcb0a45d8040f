import { RedriveError } from '@redrive/core'
import {
  type DeadLetterStore,
  type ListQuery,
  type ReplayAnswer,
  type ReplayQuery,
  type SendAgain,
  type StoredDeadLetter,
  type StoreFilter,
  type StorePage,
  type StoreStats,
  writeStored,
} from '@redrive/runtime'
import { Claims } from './claims.ts'
import { cleanUp } from './cleanup.ts'
import { readCursor } from './cursor.ts'
import { Entries } from './entries.ts'
import { closedError, diskError } from './errors.ts'
import { hashOfId } from './hashing.ts'
import { erasing, saving } from './jobs.ts'
import { Lookout } from './lookout.ts'
import type { ResolvedOptions } from './options.ts'
import { firstOf, pageOf, type Read } from './pages.ts'
import { readAll } from './reader.ts'
import type { Ref } from './segment.ts'
import { positionOf } from './walk.ts'
import { Writer } from './writer.ts'

/** 64 MB: seconds of a slow disk. Whoever saves faster than that should hear of it. */
const MOST_WAITING_BYTES = 64 * 2 ** 20
/** A batch is read in pieces of this size: it may be of millions. */
const BATCH_PAGE = 100

/** A dead-letter store in files. */
export interface FileStore extends DeadLetterStore {
  /** Removes what was saved before the moment, or longer ago than the retention; answers how many. */
  cleanup(options?: { readonly savedBefore?: number }): Promise<number>
}

export class Store implements FileStore {
  readonly #options: ResolvedOptions
  readonly #entries = new Entries()
  readonly #lookout: Lookout
  readonly #writer: Writer
  readonly #claims: Claims
  readonly #atWork = new Set<Promise<unknown>>()
  #waitingBytes = 0
  #isKnown = false
  #closing: Promise<void> | undefined

  constructor(options: ResolvedOptions) {
    const { directory, clock, leaseMs } = options
    this.#options = options
    this.#lookout = new Lookout(directory, this.#entries, clock)
    this.#writer = new Writer(options, this.#entries)
    this.#claims = new Claims(directory, leaseMs, clock)
  }

  save(deadLetter: StoredDeadLetter): Promise<void> {
    return this.#work(async () => {
      // Before anything waits: whoever gave it may use its buffer again.
      const line = Buffer.from(`${writeStored(deadLetter)}\n`)
      this.#waitingBytes += line.length
      try {
        if (!this.#isKnown) await this.#look()
        await this.#checkRoom(deadLetter.id, line.length)
        await this.#writer.append(saving(this.#entries, deadLetter, line))
      } finally {
        this.#waitingBytes -= line.length
      }
    })
  }

  get(id: string): Promise<StoredDeadLetter | undefined> {
    return this.#work(async () => {
      await this.#look()
      const ref = this.#entries.find(hashOfId(id))
      return ref && (await this.#read([ref]))[0]
    })
  }

  list({ filter = {}, most, after }: ListQuery): Promise<StorePage> {
    return this.#work(async () => {
      const position = after === undefined ? undefined : readCursor(after)
      await this.#look()
      return pageOf(this.#entries, this.#read, { filter, most }, position)
    })
  }

  replay(id: string, send: SendAgain): Promise<boolean> {
    return this.#work(() => this.#replay(id, send))
  }

  replayBatch(
    { filter = {}, most, atOnce = 1 }: ReplayQuery,
    send: SendAgain,
  ): Promise<ReplayAnswer> {
    return this.#work(async () => {
      let replayed = 0
      let failed = 0
      const waiting = this.#oldest(filter, most)
      const work = async () => {
        for await (const { id } of waiting) {
          // Those that are left stay: who closes waits for what is being sent, and for no more.
          if (this.#closing !== undefined) return
          try {
            if (await this.#replay(id, send)) replayed += 1
          } catch {
            // Counted, and it stays: `send` has told its own story.
            failed += 1
          }
        }
      }
      await Promise.all(Array.from({ length: atOnce }, work))
      return { replayed, failed }
    })
  }

  delete(id: string): Promise<boolean> {
    return this.#work(async () => {
      await this.#look()
      return this.#erase(this.#entries.all(hashOfId(id)))
    })
  }

  stats(): Promise<StoreStats> {
    return this.#work(async () => {
      await this.#look()
      const [oldest] = firstOf(this.#entries, {}, 1)
      return this.#entries.stats(oldest && positionOf(oldest).savedAt)
    })
  }

  cleanup(options: { readonly savedBefore?: number } = {}): Promise<number> {
    const { clock, retentionMs } = this.#options
    const { savedBefore = clock.now() - retentionMs } = options
    return this.#work(async () => {
      await this.#look()
      const count = await cleanUp(this.#options, this.#entries, this.#writer, savedBefore)
      await this.#claims.tidy()
      return count
    })
  }

  /** Waits for what is being saved and sent, and ends the file. */
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

  async #look(): Promise<void> {
    await this.#disk(() => this.#lookout.look())
    this.#isKnown = true
  }

  async #checkRoom(id: string, bytes: number): Promise<void> {
    const { maxBytes, directory } = this.#options
    if (this.#waitingBytes > MOST_WAITING_BYTES && this.#waitingBytes > bytes) {
      const message = `${directory} takes dead letters more slowly than they come: slow down, or use fsync: 'never' or a faster disk.`
      throw new RedriveError('DLQ_FULL', message)
    }
    if (this.#fits(id, maxBytes)) return
    // Others may have made room.
    await this.#look()
    if (this.#fits(id, maxBytes)) return
    const message = `The dead letters in ${directory} have reached ${maxBytes} bytes: replay or delete some, call cleanup(), or raise maxBytes.`
    throw new RedriveError('DLQ_FULL', message)
  }

  /** With all that waits to be written, this one included; what it replaces makes room. */
  #fits(id: string, maxBytes: number): boolean {
    if (maxBytes === Number.POSITIVE_INFINITY) return true
    const known = this.#entries.find(hashOfId(id))
    const freed = known === undefined ? 0 : (known.segment.rows.length[known.row] ?? 0)
    return this.#entries.bytes - freed + this.#waitingBytes <= maxBytes
  }

  async *#oldest(filter: StoreFilter, most: number): AsyncGenerator<StoredDeadLetter> {
    let after: string | undefined
    for (let left = most; left > 0; left -= BATCH_PAGE) {
      await this.#look()
      const position = after === undefined ? undefined : readCursor(after)
      const query = { filter, most: Math.min(left, BATCH_PAGE) }
      const page = await pageOf(this.#entries, this.#read, query, position)
      yield* page.deadLetters
      if (page.next === undefined) return
      after = page.next
    }
  }

  async #replay(id: string, send: SendAgain): Promise<boolean> {
    const hash = hashOfId(id)
    await this.#look()
    if (this.#entries.find(hash) === undefined) return false
    const release = await this.#disk(() => this.#claims.take(hash))
    if (release === undefined) return false
    try {
      // Whoever had the claim before us may have sent it.
      await this.#look()
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

  /** Whether any was there for people to see. */
  async #erase(refs: readonly Ref[]): Promise<boolean> {
    if (refs.length === 0) return false
    const job = erasing(this.#entries, refs)
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
