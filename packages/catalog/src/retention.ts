import type { Pool } from 'pg'
import { explaining } from './database.ts'
import { GROUPS_MAX } from './ingest/groups.ts'
import {
  CLEANUP,
  COUNT_EXPIRING,
  DELETE_GROUPS,
  DELETE_ITEMS,
  DELETE_RUN,
  DELETE_SOME,
  DROP_DAY,
  EXPIRED_DAYS,
  EXPIRED_RUNS,
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
  /** Number of replay runs deleted with their items. */
  readonly runs: number
  /** Number of groups deleted that had no dead letters. */
  readonly groups: number
}

export interface MaintenanceOptions {
  /** How long an ended run is kept. */
  readonly runRetentionMs: number
}

/** 5,000 rows per transaction: they stay locked for some tens of ms. */
const DELETE_BATCH = 5_000
/** 200,000 rows per call: the next call deletes the rest. */
const DELETE_MAX = 200_000
/** 500 groups per transaction: an ingest of the source waits for it. */
const GROUP_BATCH = 500
/** Half of the limit: a source with more groups has little room for new ones. */
const MANY_GROUPS = GROUPS_MAX / 2

/** Runs all maintenance steps. Each is a separate transaction, so no step holds locks during another. */
export async function maintainAll(
  pool: Pool,
  { runRetentionMs }: MaintenanceOptions,
): Promise<MaintenanceResult> {
  return explaining(async () => {
    const dropped = await dropDays(pool)
    const deleted = await deleteRest(pool)
    const made = await numberOf(pool, MAKE_DAYS, [])
    const runs = await deleteRuns(pool, runRetentionMs)
    for (const statement of CLEANUP) await pool.query(statement)
    let groups = 0
    const { rows } = await pool.query<{ id: number }>(SOURCE_IDS)
    for (const { id } of rows) {
      groups += await deleteGroups(pool, id)
      await pool.query(COUNT_EXPIRING, [id])
    }
    return { made, dropped, deleted, runs, groups }
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

/** Deletes the items of each run first, in small steps. The next call continues after an interruption. */
async function deleteRuns(pool: Pool, retentionMs: number): Promise<number> {
  const { rows } = await pool.query<{ id: string }>(EXPIRED_RUNS, [retentionMs])
  let runs = 0
  let items = 0
  for (const { id } of rows) {
    for (let deleted = DELETE_BATCH; deleted === DELETE_BATCH; items += deleted) {
      if (items >= DELETE_MAX) return runs
      deleted = (await pool.query(DELETE_ITEMS, [id, DELETE_BATCH])).rowCount ?? 0
    }
    runs += (await pool.query(DELETE_RUN, [id])).rowCount ?? 0
  }
  return runs
}

async function deleteGroups(pool: Pool, sourceId: number): Promise<number> {
  let total = 0
  for (let deleted = GROUP_BATCH; deleted === GROUP_BATCH; total += deleted) {
    deleted = await numberOf(pool, DELETE_GROUPS, [sourceId, MANY_GROUPS, GROUP_BATCH])
  }
  return total
}

async function numberOf(pool: Pool, text: string, values: readonly unknown[]): Promise<number> {
  const { rows } = await pool.query<Record<string, number>>(text, [...values])
  return Object.values(rows[0] ?? {})[0] ?? 0
}
