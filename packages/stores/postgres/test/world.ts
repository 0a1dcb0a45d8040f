import { randomUUID } from 'node:crypto'
import { poolOn } from '@redrive/dev-support'
import type { DeadLetterStore } from '@redrive/runtime'
import type { StoreFixture } from '@redrive/testing'
import type { Pool } from 'pg'
import { postgresStore, type PostgresStoreOptions } from '../src/index.ts'

/** A separate store in a database, with one pool for each process that opens it. */
export class PostgresWorld implements StoreFixture {
  readonly name = `test-${randomUUID()}`
  readonly #url: string
  readonly #options: Partial<PostgresStoreOptions>
  readonly #pools = new Map<DeadLetterStore, Pool>()
  readonly #crashed = new Set<Pool>()

  constructor(url: string, options: Partial<PostgresStoreOptions> = {}) {
    this.#url = url
    this.#options = options
  }

  store(options: Partial<PostgresStoreOptions> = {}): DeadLetterStore {
    const pool = poolOn(this.#url, 3)
    const store = postgresStore({
      pool,
      name: this.name,
      lease: '1s',
      ...this.#options,
      ...options,
    })
    this.#pools.set(store, pool)
    return store
  }

  /** Makes the pool useless. A statement that the server already has is applied, as after `kill -9`. */
  crash(store: DeadLetterStore): void {
    const pool = this.#pools.get(store)
    if (pool === undefined) return
    this.#crashed.add(pool)
    pool.connect = () => Promise.reject(new Error('crashed'))
    void pool.end()
  }

  async close(): Promise<void> {
    for (const pool of this.#pools.values()) if (!this.#crashed.has(pool)) await pool.end()
  }
}
