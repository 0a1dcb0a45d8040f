// Many new failure groups of one source, as in an incident with many kinds of errors.
import { type Catalog, catalog, migrate } from '@redrive/catalog'
import { lettersAt } from '../catalog/letters.ts'
import { dropLeftovers, ownDatabase, poolOf, withoutAutovacuum } from '../postgres/database.ts'
import { added } from './groups.ts'
import { msOf } from './measuring.ts'
import type { Stage } from './subject.ts'

/** Dead letters of one ingest, each of a new group. */
const BATCH = 100
const POOL = 15
/** Groups of another source, which the statistics of the database know. */
const KNOWN = 1_000
const GROUPS = 'redrive_catalog.failure_group'

export async function openNewGroups(): Promise<Stage> {
  await dropLeftovers()
  return {
    measure: async (size) => ({ ingest: [await ingestMs(size)] }),
    close: () => Promise.resolve(),
  }
}

/** Uses a separate database for each size, because statistics of earlier sizes would change its plans. */
async function ingestMs(size: number): Promise<number> {
  const database = await ownDatabase()
  const pool = poolOf(database.url, { max: POOL })
  try {
    await migrate(pool)
    // It runs once a minute. An incident creates thousands of groups before that.
    await withoutAutovacuum(pool, GROUPS)
    const made = catalog({ pool })
    await addedNew(made, 'known', 0, KNOWN)
    await pool.query(`vacuum analyze ${GROUPS}`)
    return await msOf(async () => {
      for (let first = KNOWN; first < KNOWN + size; first += BATCH)
        await addedNew(made, 'incident', first, BATCH)
    })
  } finally {
    await pool.end()
    await database.drop()
  }
}

/** Every number is a group that does not exist yet. */
const addedNew = (made: Catalog, source: string, first: number, count: number) =>
  added(
    made,
    source,
    lettersAt(first, count, Date.now(), (number) => number),
  )
