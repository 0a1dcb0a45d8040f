import { createHash } from 'node:crypto'
import {
  inTransaction,
  type NamedStatement,
  QUERY_TIMEOUT_MS,
  queryInTime,
  queryWithTimeout,
  sqlStateOf,
} from '@redrive/postgres-internal'
import type { Pool } from 'pg'
import { inSchema, type Tables } from './schema.ts'

const READ_COMMITTED = 'read committed'
const BEGIN = `begin isolation level ${READ_COMMITTED}`

/** The default isolation level of each pool. It depends on the server, the database and the role. */
const isolations = new WeakMap<Pool, string>()

/** Pools on which prepared statements failed. */
const unprepared = new WeakSet<Pool>()

const ISOLATION = `select pg_catalog.current_setting('transaction_isolation')`

/**
 * Runs a statement at the isolation level "read committed". Claims depend on it: after waiting for a lock they must see
 * what was committed during the wait. With another default, the statement gets an explicit transaction.
 */
export function runStatement<R extends unknown[]>(
  { pool, schema }: Tables,
  text: string,
  values: readonly unknown[],
): Promise<readonly R[]> {
  return run<R>(pool, inSchema(text, schema), values)
}

async function run<R extends unknown[]>(
  pool: Pool,
  statement: string | NamedStatement,
  values: readonly unknown[],
): Promise<readonly R[]> {
  const isolation = isolations.get(pool) ?? (await readIsolation(pool))
  if (isolation === READ_COMMITTED) return queryWithTimeout<R>(pool, statement, values)
  return inTransaction(pool, (client) => queryInTime<R>(client, statement, values), {
    begin: BEGIN,
    timeoutMs: QUERY_TIMEOUT_MS,
  })
}

/**
 * Runs a prepared statement. If the connection does not keep prepared statements, because a pooler is between, this
 * and all later statements of the pool are sent as text.
 */
export async function runPrepared<R extends unknown[]>(
  { pool, schema }: Tables,
  text: string,
  values: readonly unknown[],
): Promise<readonly R[]> {
  const statement = prepared(inSchema(text, schema))
  if (unprepared.has(pool)) return run<R>(pool, statement.text, values)
  try {
    return await run<R>(pool, statement, values)
  } catch (error) {
    if (!NOT_PREPARED.has(sqlStateOf(error) ?? '')) throw error
    unprepared.add(pool)
    return run<R>(pool, statement.text, values)
  }
}

/** Prepared statements by text. */
const statements = new Map<string, NamedStatement>()

function prepared(text: string): NamedStatement {
  const known = statements.get(text)
  if (known !== undefined) return known
  const hash = createHash('sha256').update(text).digest('hex').slice(0, 16)
  const statement = { name: `redrive_outbox_${hash}`, text }
  statements.set(text, statement)
  return statement
}

/**
 * invalid_sql_statement_name, duplicate_prepared_statement, and feature_not_supported: a migration changed the type of
 * the result. The server reports them before it runs the statement, so the statement can be repeated.
 */
const NOT_PREPARED: ReadonlySet<string> = new Set(['26000', '42P05', '0A000'])

async function readIsolation(pool: Pool): Promise<string> {
  const [[isolation] = [READ_COMMITTED]] = await queryWithTimeout<[string]>(pool, ISOLATION, [])
  isolations.set(pool, isolation)
  return isolation
}
