import assert from 'node:assert/strict'
import { type RedriveErrorCode, isRedriveError } from '@redrive/core'
import {
  type Awaitable,
  type DeadLetterStore,
  type StoredDeadLetter,
  type StoreFilter,
  systemClock,
} from '@redrive/runtime'
import { Patience } from '../exercise/patience.ts'
import { told } from './samples.ts'
import type { StoreWorld } from './world.ts'

export interface StoreStageParts {
  readonly world: StoreWorld
  readonly deadlineMs: number
  readonly crash: (store: DeadLetterStore) => Awaitable<void>
  readonly bounded: () => Awaitable<StoreWorld>
}

/** Where one scenario plays, and the looking that all scenarios share. */
export class StoreStage extends Patience {
  readonly #parts: StoreStageParts
  readonly #open: DeadLetterStore[] = []
  readonly #worlds: StoreWorld[]

  constructor(parts: StoreStageParts) {
    super(systemClock, parts.deadlineMs)
    this.#parts = parts
    this.#worlds = [parts.world]
  }

  /** A store on the place, as one more process has it. */
  async store(): Promise<DeadLetterStore> {
    return this.#opened(await this.#parts.world.store())
  }

  /** A store with room for a few. */
  async bounded(): Promise<DeadLetterStore> {
    const world = await this.#parts.bounded()
    this.#worlds.push(world)
    return this.#opened(await world.store())
  }

  #opened(store: DeadLetterStore): DeadLetterStore {
    this.#open.push(store)
    return store
  }

  async crash(store: DeadLetterStore): Promise<void> {
    this.#open.splice(this.#open.indexOf(store), 1)
    await this.#parts.crash(store)
  }

  /** Everything that fits, page by page, oldest first. */
  async all(
    store: DeadLetterStore,
    filter: StoreFilter = {},
    most = 100,
  ): Promise<readonly StoredDeadLetter[]> {
    const found: StoredDeadLetter[] = []
    let after: string | undefined
    do {
      const page = await store.list({ filter, most, ...(after === undefined ? {} : { after }) })
      assert.ok(page.deadLetters.length <= most, `a page holds ${most} at most`)
      found.push(...page.deadLetters)
      after = page.next
    } while (after !== undefined)
    return found
  }

  async ids(store: DeadLetterStore, filter: StoreFilter = {}): Promise<readonly string[]> {
    return (await this.all(store, filter)).map(({ id }) => id)
  }

  /** The store holds these and no others, in this order, whole: by `list`, by `get` and by `stats`. */
  async holds(store: DeadLetterStore, expected: readonly StoredDeadLetter[]): Promise<void> {
    assert.deepEqual((await this.all(store)).map(told), expected.map(told), 'what the store lists')
    for (const one of expected) {
      const found = await store.get(one.id)
      assert.ok(found !== undefined, `${one.id} is in the list and cannot be got`)
      assert.deepEqual(told(found), told(one))
    }
    assert.equal((await store.stats()).count, expected.length, 'what the store counts')
  }

  async rejects(what: string, code: RedriveErrorCode, call: () => Promise<unknown>): Promise<void> {
    await assert.rejects(call, (error) => {
      assert.ok(isRedriveError(error, code), `${what}: expected ${code}, got ${String(error)}`)
      return true
    })
  }

  async close(): Promise<void> {
    for (const store of this.#open) await this.within('the store closes', store.close())
    for (const world of this.#worlds) await this.within('the world closes', world.close())
  }
}
