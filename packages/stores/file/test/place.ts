import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { FailureClass } from '@redrive/core'
import {
  type Clock,
  type DeadLetterStore,
  type StoredDeadLetter,
  systemClock,
} from '@redrive/runtime'
import type { StoreWorld } from '@redrive/testing'
import { type FileStore, type FileStoreOptions, fileStore } from '../src/index.ts'

/** A temporary folder, and what a test opens in it. */
export class Place implements StoreWorld {
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

  /** Its timers are dead; what it had handed to the operating system is written, as after `kill -9`. */
  crash(store: DeadLetterStore): void {
    this.#processes.get(store)?.die()
  }

  async close(): Promise<void> {
    // Frees their file handles. A dead one may be sending for ever: nobody waits for that.
    for (const [store, clock] of this.#processes) {
      const closing = store.close()
      if (!clock.isDead) await closing
    }
    // Again when one of those writes its index just now.
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
    failure: {
      class: failureClass,
      signature: 'v1',
      type: 'Error',
      code: undefined,
      message: 'it broke',
      retryAfterMs: undefined,
      timedOut: false,
      stack: undefined,
    },
    cycle: {
      number: 1,
      attempts: 3,
      firstFailedAt: 1,
      lastDelayMs: 0,
      notBefore: undefined,
      history: [],
    },
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
    const page = await store.list({ most: 100, ...(after === undefined ? {} : { after }) })
    found.push(...page.deadLetters)
    after = page.next
  } while (after !== undefined)
  return found
}
