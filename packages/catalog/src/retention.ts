import type { Pool } from 'pg'
import { explaining } from './database.ts'
import {
  CLEANUP,
  COUNT_EXPIRING,
  DELETE_SOME,
  DROP_DAY,
  EXPIRED_DAYS,
  EXPIRED_SOURCE_DAYS,
  MAKE_DAYS,
  SOURCE_IDS,
} from './statements.ts'

/** The result of one maintenance call. */
export interface MaintenanceResult {
  /** Number of days for which partitions were created. */
  readonly made: number
  /** Number of days whose partitions were dropped. */
  readonly dropped: number
  /** Number of dead letters deleted one by one, because other dead letters keep their day longer. */
  readonly deleted: number
}

/** 5,000 rows per transaction: they stay locked for some tens of ms. */
const DELETE_BATCH = 5_000
/** 200,000 rows per call: the next call deletes the rest. */
const DELETE_MAX = 200_000

/** Runs all maintenance steps. Each is a separate transaction, so no step holds locks during another. */
export async function maintainAll(pool: Pool): Promise<MaintenanceResult> {
  return explaining(async () => {
    const dropped = await dropDays(pool)
    const deleted = await deleteRest(pool)
    const made = await numberOf(pool, MAKE_DAYS, [])
    for (const statement of CLEANUP) await pool.query(statement)
    await countExpiring(pool)
    return { made, dropped, deleted }
  })
}

async function dropDays(pool: Pool): Promise<number> {
  const { rows } = await pool.query<{ day: string }>(EXPIRED_DAYS)
  let dropped = 0
  for (const { day } of rows) {
    dropped += await numberOf(pool, DROP_DAY, [day])
  }
  return dropped
}

async function deleteRest(pool: Pool): Promise<number> {
  const { rows } = await pool.query<{ source_id: number; day: string }>(EXPIRED_SOURCE_DAYS)
  let total = 0
  for (const { source_id, day } of rows) {
    for (let deleted = DELETE_BATCH; deleted === DELETE_BATCH && total < DELETE_MAX; ) {
      deleted = await numberOf(pool, DELETE_SOME, [source_id, day, DELETE_BATCH])
      total += deleted
    }
  }
  return total
}

async function countExpiring(pool: Pool): Promise<void> {
  const { rows } = await pool.query<{ id: number }>(SOURCE_IDS)
  for (const { id } of rows) await pool.query(COUNT_EXPIRING, [id])
}

async function numberOf(pool: Pool, text: string, values: readonly unknown[]): Promise<number> {
  const { rows } = await pool.query<Record<string, number>>(text, [...values])
  return Object.values(rows[0] ?? {})[0] ?? 0
}
