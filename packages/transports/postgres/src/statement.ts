import {
  inTransaction,
  QUERY_TIMEOUT_MS,
  queryInTime,
  queryWithTimeout,
} from '@redrive/postgres-internal'
import type { Pool } from 'pg'

const READ_COMMITTED = 'read committed'
const BEGIN = `begin isolation level ${READ_COMMITTED}`

/** The default isolation level of each pool. It depends on the server, the database and the role. */
const isolations = new WeakMap<Pool, string>()

const ISOLATION = `select pg_catalog.current_setting('transaction_isolation')`

/**
 * Runs a statement at the isolation level "read committed". Claims depend on it: after waiting for a lock they
 * must see what was committed meanwhile. With another default, the statement gets an explicit transaction.
 */
export async function runStatement<R extends unknown[]>(
  pool: Pool,
  text: string,
  values: readonly unknown[],
): Promise<readonly R[]> {
  const isolation = isolations.get(pool) ?? (await readIsolation(pool))
  if (isolation === READ_COMMITTED) return queryWithTimeout<R>(pool, text, values)
  return inTransaction(pool, (client) => queryInTime<R>(client, text, values), {
    begin: BEGIN,
    timeoutMs: QUERY_TIMEOUT_MS,
  })
}

async function readIsolation(pool: Pool): Promise<string> {
  const [[isolation] = [READ_COMMITTED]] = await queryWithTimeout<[string]>(pool, ISOLATION, [])
  isolations.set(pool, isolation)
  return isolation
}
