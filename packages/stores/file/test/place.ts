import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type FailureClass, FIRST_CYCLE } from '@redrive/core'
import { aFailure } from '@redrive/dev-support'
import {
  type Clock,
  type DeadLetterStore,
  type StoredDeadLetter,
  systemClock,
} from '@redrive/runtime'
import type { StoreFixture } from '@redrive/testing'
import { type FileStore, type FileStoreOptions, fileStore } from '../src/index.ts'

/** A temporary folder, with the stores that a test opens in it. */
export class Place implements StoreFixture {
  readonly directory: string
  readonly #options: Partial<FileStoreOptions>
  readonly #processes = new Map<DeadLetterStore, MortalClock>()

  private constructor(directory: string, options: Partial<FileStoreOptions>) {
    this.directory = directory
    this.#options = options
  }

  static async make(options: Partial<FileStoreOptions> = {}): Promise<Place> {
    return new Place(await mkdtemp(join(tmpdir(), 'redrive-store-')), options)
  }

  store(options: Partial<FileStoreOptions> = {}): FileStore {
    const clock = new MortalClock()
    const store = fileStore({ directory: this.directory, clock, ...this.#options, ...options })
    this.#processes.set(store, clock)
    return store
  }

  /** Stops its timers. Data that the operating system already has is written, as after `kill -9`. */
  crash(store: DeadLetterStore): void {
    this.#processes.get(store)?.die()
  }

  async close(): Promise<void> {
    // Closes their file handles. A crashed store may be sending forever, so it is not awaited.
    for (const [store, clock] of this.#processes) {
      const closing = store.close()
      if (!clock.isDead) await closing
    }
    // Retries when one of them writes its index at this time.
    await rm(this.directory, { recursive: true, force: true, maxRetries: 10 })
  }
}

class MortalClock implements Clock {
  isDead = false
  die(): void {
    this.isDead = true
  }
  now(): number {
    return systemClock.now()
  }
  after(delayMs: number, callback: () => void): () => void {
    return systemClock.after(delayMs, () => {
      if (!this.isDead) callback()
    })
  }
}

export interface Changes {
  readonly savedAt?: number
  readonly sink?: string
  readonly class?: FailureClass
  readonly text?: string
  readonly job?: string
}

export function deadLetter(id: string, changes: Changes = {}): StoredDeadLetter {
  const { savedAt = Date.now(), sink = 'loki', class: failureClass = 'transient' } = changes
  return {
    id,
    sink,
    reason: 'attempts_exhausted',
    job: changes.job,
    savedAt,
    failure: aFailure({ class: failureClass }),
    cycle: { ...FIRST_CYCLE, attempts: 3, firstFailedAt: 1 },
    event: {
      id,
      key: id,
      type: 'order.paid',
      lane: undefined,
      at: 1,
      bytes: Buffer.from(changes.text ?? `body of ${id}`),
      contentType: 'text/plain',
      headers: {},
    },
  }
}

export async function idsOf(store: DeadLetterStore): Promise<readonly string[]> {
  return (await allOf(store)).map(({ id }) => id)
}

export async function allOf(store: DeadLetterStore): Promise<readonly StoredDeadLetter[]> {
  const found: StoredDeadLetter[] = []
  let after: string | undefined
  do {
    const page = await store.list({ limit: 100, ...(after === undefined ? {} : { cursor: after }) })
    found.push(...page.deadLetters)
    after = page.nextCursor
  } while (after !== undefined)
  return found
}
