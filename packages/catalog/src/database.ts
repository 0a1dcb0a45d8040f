import { isRedriveError, RedriveError } from '@redrive/core'
import {
  borrow,
  explainErrors,
  explainSqlState,
  inTransaction as inPlainTransaction,
  type PlanName,
  type RunSql,
  runSqlOn,
  type SchemaInfo,
  sqlStateOf,
} from '@redrive/postgres-internal'
import type { Pool, PoolClient, QueryResult, QueryResultRow } from 'pg'
import { copyIn } from './copy-in.ts'

export type { RunSql } from '@redrive/postgres-internal'

export const SCHEMA: SchemaInfo = {
  name: 'redrive_catalog',
  migrateCall: 'migrate(pool)',
  sqlCall: 'migrationSql()',
}

const call = explainErrors(SCHEMA)

/** Adds rows in the binary format to a table, given as `'name (column, …)'`. Adds all rows or rejects. */
export type Copy = (target: string, rows: Buffer) => Promise<void>

/** Runs `work` in one transaction on a connection of the pool. `settings` are statements for this transaction only. */
export const inTransaction = <T>(
  pool: Pool,
  work: (run: RunSql, copy: Copy) => Promise<T>,
  settings = '',
): Promise<T> =>
  inPlainTransaction(pool, (client) => work(runSqlOn(client, call), copyOn(client)), {
    begin: `begin; ${settings}`,
    call,
  })

/** Runs `work` in a read-only transaction. The caller does not wait for its commit. */
export async function inReading<T>(
  pool: Pool,
  work: (run: RunSql) => Promise<T>,
  settings: string,
  planName: PlanName | undefined,
): Promise<T> {
  const { client, release } = await call(() => borrow(pool))
  try {
    await call(() => client.query(`begin read only; ${settings}`))
    const result = await work(runSqlOn(client, call, planName))
    client.query('commit').then(
      () => release(true),
      () => release(false),
    )
    return result
  } catch (error) {
    release(false)
    throw error
  }
}

/** Runs one statement on a connection of the pool. Known errors are replaced by errors with an instruction. */
export async function query<R extends object>(
  pool: Pool,
  text: string,
  values: readonly unknown[] = [],
): Promise<QueryResult<R & QueryResultRow>> {
  return explaining(() => call(() => pool.query<R & QueryResultRow>(text, [...values])))
}

const copyOn =
  (client: PoolClient): Copy =>
  (target, rows) =>
    call(() => copyIn(client, `copy redrive_catalog.${target} from stdin (format binary)`, rows))

/** Runs `work` and replaces known errors by errors with an instruction. */
export async function explaining<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw explained(error)
  }
}

/** Returns an error with an instruction for a known error, and any other error unchanged. */
export function explained(error: unknown): unknown {
  if (!isRedriveError(error) && sqlStateOf(error) === CANCELLED) return tooBroad(error)
  return explainSqlState(error, SCHEMA)
}

/** query_canceled: the statement timeout ended the statement. */
const CANCELLED = '57014'

const tooBroad = (cause: unknown) =>
  new RedriveError(
    'REFUSED',
    'The search exceeded its time limit and was cancelled. Narrow it by a group, a key or a shorter time range.',
    { cause },
  )

/** invalid_sql_statement_name, duplicate_prepared_statement: a pooler switched the connection to the server. */
export const isPlanLost = (error: unknown): boolean =>
  ['26000', '42P05'].includes(sqlStateOf(error) ?? '')

/** unique_violation: the row exists already. */
export const isDuplicate = (error: unknown): boolean => sqlStateOf(error) === '23505'

/**
 * Whether the server rejected a value (data exception, constraint, program limit). A retry would fail again;
 * the same statement without that value can succeed.
 */
export function isDataRefused(error: unknown): boolean {
  return /^(?:22|23|54)/.test(sqlStateOf(error) ?? '')
}
