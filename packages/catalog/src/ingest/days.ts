import type { Pool } from 'pg'
import type { Entry } from './entry.ts'
import { MAKE_DAYS_OF_BATCH } from './statements.ts'

const DAY_MS = 86_400_000

/** Creates the partitions that a batch needs, once for each day. */
export class Days {
  readonly #pool: Pool
  readonly #created = new Set<number>()

  constructor(pool: Pool) {
    this.#pool = pool
  }

  async make(entries: readonly Entry[]): Promise<void> {
    const missing = new Set<number>()
    for (const { saidAt } of entries) {
      const day = saidAt === undefined ? UNDATED : Math.floor(saidAt / DAY_MS)
      if (!this.#created.has(day)) missing.add(day)
    }
    if (missing.size === 0) return
    const days = [...missing].filter((day) => day !== UNDATED)
    const dates = days.map((day) => new Date(day * DAY_MS).toISOString().slice(0, 10))
    await this.#pool.query(MAKE_DAYS_OF_BATCH, [dates])
    for (const day of missing) this.#created.add(day)
  }
}

const UNDATED = -1
