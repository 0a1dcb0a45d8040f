import type { Pool } from 'pg'
import type { Evidence, FoundMessage, Place } from '../evidence/evidence.ts'
import { countEffects, readEffects } from '../harness/effects.ts'
import { readHistory } from '../evidence/history.ts'
import { isAsSent } from '../evidence/message.ts'
import type { Progress, Server } from '../harness/server.ts'
import { readOrders } from './database.ts'
import type { PostgresWorld } from './world.ts'

/**
 * The table as an administrator sees it, with plain SQL on documented columns. It calls no function
 * of the schema, so a mistake there stays visible.
 */
export const postgresServer: Server<PostgresWorld> = {
  look,
  // The table is exact: it contains every message.
  isOver: async () => true,
  countEffects: ({ database, run }) => countEffects(database.pool, run),
  collect,
  // The database of the run is dropped as a whole.
  forget: async () => undefined,
}

const UNFINISHED = `
select count(*) filter (where due_at <= now() + interval '1 minute')::int as soon,
  count(*) filter (where due_at > now() + interval '1 minute')::int as later
from redrive.outbox where status in ('pending', 'in_flight')`

async function look({ database: { pool }, run, expected }: PostgresWorld): Promise<Progress> {
  const effects = await countEffects(pool, run)
  const { rows } = await pool.query<{ soon: number; later: number }>(UNFINISHED)
  const { soon = 0, later = 0 } = rows[0] ?? {}
  const dead = await pool.query<{ count: number }>(
    `select count(*)::int as count from redrive.outbox where status = 'failed'`,
  )
  const hasAll =
    effects >= expected.effect && (dead.rows[0]?.count ?? 0) >= expected.dlq + expected.quarantine
  return { hasAll, isQuiet: soon === 0 && later === expected.delay }
}

async function collect({ database: { pool }, run, folder }: PostgresWorld): Promise<Evidence> {
  return {
    entries: readHistory(folder),
    found: await readFound(pool),
    effects: await readEffects(pool, run),
    committed: await readOrders(pool, run),
  }
}

interface Row {
  readonly key: string
  readonly queue: string
  readonly status: string
  readonly isDue: boolean
  readonly reason: string | null
  readonly payload: Buffer
}

/** All rows that are not delivered. The checker notices a delivered row without an effect. */
const FOUND = `
select key, queue, status, due_at <= now() as "isDue", reason, payload
from redrive.outbox where status <> 'delivered'`

async function readFound(pool: Pool): Promise<readonly FoundMessage[]> {
  const { rows } = await pool.query<Row>(FOUND)
  return rows.map((row) => ({
    id: row.key,
    queue: `${row.queue} ${row.status}`,
    place: placeOf(row),
    reason: row.reason ?? undefined,
    isWhole: isAsSent(row.key, row.payload),
  }))
}

const QUARANTINED: ReadonlySet<string | null> = new Set(['same_failure_repeated', 'crash_loop'])

function placeOf({ status, isDue, reason }: Row): Place {
  if (status === 'failed') return QUARANTINED.has(reason) ? 'quarantine' : 'dlq'
  return status === 'pending' && !isDue ? 'delay' : 'source'
}
