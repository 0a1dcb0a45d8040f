// Compares Redrive with itself where planners go wrong: statistics without this queue, and plans
// made once for all parameters.
import type { Pool } from 'pg'
import type { Contender, Entrants } from './contender.ts'
import { emptied } from './database.ts'
import { FIXED, redrive } from './redrive.ts'

/** Number of messages of another queue that wait in the same table. */
const OTHERS = 20_000
const ADD_OTHERS = `
  insert into redrive.outbox (queue, payload) select 'others', '{}' from generate_series(1, ${OTHERS})`

/**
 * The statistics contain only the other queue, or both. No vacuum after the fill, because it counts
 * rows too.
 */
const amongOthers =
  (analyzed: 'before the fill' | 'after the fill') =>
  async (contender: Contender, pool: Pool, count: number): Promise<void> => {
    const { table } = contender
    await emptied(pool, table)
    await pool.query(ADD_OTHERS)
    if (analyzed === 'before the fill') await pool.query(`analyze ${table}`)
    await contender.fill(count)
    if (analyzed === 'after the fill') await pool.query(`analyze ${table}`)
  }

const open = redrive({ policy: FIXED })

export const ANALYZED = 'redrive, analyzed'
export const STALE = 'redrive, stale statistics'

export const statistics: Entrants = [
  { name: ANALYZED, open, prepare: amongOthers('after the fill') },
  { name: STALE, open, prepare: amongOthers('before the fill') },
]

export const CHOSEN = 'redrive, plans as chosen'
export const GENERIC = 'redrive, generic plans'

export const planCaches: Entrants = [
  { name: CHOSEN, open },
  {
    name: GENERIC,
    open: redrive({
      policy: FIXED,
      pool: { options: '-c plan_cache_mode=force_generic_plan' },
    }),
  },
]
