import type { Pool } from 'pg'
import type { Entry } from './entry.ts'

const DAY_MS = 86_400_000

/**
 * 90 days back, 7 ahead: what is further away has a clock of its own, and goes to the default partition.
 * Today in any case: that is where those go that do not say when they failed.
 */
const MAKE = `
select redrive_catalog.make_days(array(
  select day from unnest($1::date[]) as day where day between t.today - 90 and t.today + 7
  union select t.today))
  from (select (now() at time zone 'UTC')::date as today) t`

/** Makes the partitions that a batch needs, once for each day. */
export class Days {
  readonly #pool: Pool
  readonly #made = new Set<number>()

  constructor(pool: Pool) {
    this.#pool = pool
  }

  async make(entries: readonly Entry[]): Promise<void> {
    const missing = new Set<number>()
    for (const { saidAt } of entries) {
      const day = saidAt === undefined ? UNDATED : Math.floor(saidAt / DAY_MS)
      if (!this.#made.has(day)) missing.add(day)
    }
    if (missing.size === 0) return
    const days = [...missing].filter((day) => day !== UNDATED)
    const dates = days.map((day) => new Date(day * DAY_MS).toISOString().slice(0, 10))
    await this.#pool.query(MAKE, [dates])
    for (const day of missing) this.#made.add(day)
  }
}

const UNDATED = -1
