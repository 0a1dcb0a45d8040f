import assert from 'node:assert/strict'
import { type RedriveErrorCode, isRedriveError } from '@redrive/core'
import {
  type Awaitable,
  type DeadLetterStore,
  type StoredDeadLetter,
  type StoreFilter,
  systemClock,
} from '@redrive/runtime'
import { Polling } from '../exercise/polling.ts'
import { comparable } from './samples.ts'
import type { StoreFixture } from './world.ts'

export interface StoreScenarioOptions {
  readonly world: StoreFixture
  readonly deadlineMs: number
  readonly crash: (store: DeadLetterStore) => Awaitable<void>
  readonly bounded: () => Awaitable<StoreFixture>
}

/** The context of one scenario, with the checks that all scenarios share. */
export class StoreScenarioContext extends Polling {
  readonly #parts: StoreScenarioOptions
  readonly #open: DeadLetterStore[] = []
  readonly #worlds: StoreFixture[]

  constructor(parts: StoreScenarioOptions) {
    super(systemClock, parts.deadlineMs)
    this.#parts = parts
    this.#worlds = [parts.world]
  }

  /** Opens a store on the fixture, as another process would. */
  async store(): Promise<DeadLetterStore> {
    return this.#opened(await this.#parts.world.store())
  }

  /** Opens a store with little room. */
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

  /** Returns all matching dead letters, page by page, oldest first. */
  async all(
    store: DeadLetterStore,
    filter: StoreFilter = {},
    most = 100,
  ): Promise<readonly StoredDeadLetter[]> {
    const found: StoredDeadLetter[] = []
    let after: string | undefined
    do {
      const page = await store.list({
        filter,
        limit: most,
        ...(after === undefined ? {} : { cursor: after }),
      })
      assert.ok(page.deadLetters.length <= most, `a page has at most ${most} entries`)
      found.push(...page.deadLetters)
      after = page.nextCursor
    } while (after !== undefined)
    return found
  }

  async ids(store: DeadLetterStore, filter: StoreFilter = {}): Promise<readonly string[]> {
    return (await this.all(store, filter)).map(({ id }) => id)
  }

  /** Asserts that the store contains exactly these, in this order and complete: by `list`, `get` and `stats`. */
  async holds(store: DeadLetterStore, expected: readonly StoredDeadLetter[]): Promise<void> {
    assert.deepEqual(
      (await this.all(store)).map(comparable),
      expected.map(comparable),
      'dead letters in list()',
    )
    for (const one of expected) {
      const found = await store.get(one.id)
      assert.ok(found !== undefined, `${one.id} is in list(), but get() returns nothing`)
      assert.deepEqual(comparable(found), comparable(one))
    }
    assert.equal((await store.stats()).count, expected.length, 'count in stats()')
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
