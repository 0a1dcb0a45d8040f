import type { Pool } from 'pg'
import { query } from '../database.ts'
import { ask, type Reader } from '../read/sql.ts'
import { MESSAGE_MAX, NAME_MAX, storable, storableOrNull } from '../text.ts'
import { RECENT_CHECKS, STORE_CHECK } from './statements.ts'

/** The result of a process that checked a source at its broker. */
export interface SourceCheck {
  /** Name of the source. */
  readonly source: string
  /** The process that checked, such as `host:4711`. */
  readonly process: string
  /** Why the broker was not reachable; undefined if it was. */
  readonly unreachable: string | undefined
  /** Names of the queues or topics with dead letters that do not exist. */
  readonly missing: readonly string[]
  /** Number of dead letters that wait in the broker; undefined if it is unknown. */
  readonly depth: number | undefined
  /** Number of messages that wait for the consumers; undefined if it is unknown. */
  readonly lag: number | undefined
}

/** A stored check, by the clock of the database. */
export interface StoredSourceCheck extends SourceCheck {
  readonly checkedAt: number
}

/** Stores the last check of a process. Returns false if no ingest has added the source yet. */
export async function storeCheck(pool: Pool, check: SourceCheck): Promise<boolean> {
  const { rowCount } = await query(pool, STORE_CHECK, [
    check.source,
    storable(check.process, NAME_MAX),
    storableOrNull(check.unreachable, MESSAGE_MAX),
    check.missing.map((name) => storable(name, NAME_MAX)),
    check.depth ?? null,
    check.lag ?? null,
  ])
  return (rowCount ?? 0) > 0
}

/** Returns the last check of each process within the last minute. */
export async function readChecks(reader: Reader): Promise<readonly StoredSourceCheck[]> {
  const rows = await ask<CheckRow>(reader, { text: RECENT_CHECKS, values: [] })
  return rows.map(({ unreachable, depth, lag, ...row }) => ({
    ...row,
    unreachable: unreachable ?? undefined,
    depth: depth ?? undefined,
    lag: lag ?? undefined,
  }))
}

type CheckRow = Omit<StoredSourceCheck, 'unreachable' | 'depth' | 'lag'> & {
  readonly unreachable: string | null
  readonly depth: number | null
  readonly lag: number | null
}
