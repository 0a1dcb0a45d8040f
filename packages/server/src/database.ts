import {
  explainErrors,
  inTransaction as inPlainTransaction,
  type RunSql,
  runSqlOn,
  type SchemaInfo,
} from '@redrive/postgres-internal'
import type { Pool, PoolClient } from 'pg'

export type { RunSql } from '@redrive/postgres-internal'

export const SCHEMA: SchemaInfo = {
  name: 'redrive_server',
  migrateCall: '`redrive migrate`',
  sqlCall: '`redrive migrate --print-sql`',
}

const call = explainErrors(SCHEMA)

/** Runs a transaction on a connection of the pool. `begin` may contain further statements. */
export const inTransaction = <T>(
  pool: Pool,
  work: (run: RunSql) => Promise<T>,
  begin = 'begin',
): Promise<T> => inPlainTransaction(pool, (client) => work(runOn(client)), { begin, call })

/** Returns a function that runs statements. Its errors describe what to do. */
export const runOn = (on: Pool | PoolClient): RunSql => runSqlOn(on, call)
