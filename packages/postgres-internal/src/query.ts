import type { CustomTypesConfig, Pool, PoolClient, QueryArrayConfig } from 'pg'
import { borrow } from './pool.ts'
import { isRejectedByServer } from './sqlstate.ts'

/** 10 s: much longer than a healthy answer takes. This also detects a half-open connection. */
export const QUERY_TIMEOUT_MS = 10_000

/**
 * A statement that each connection prepares once. The name must contain a hash of the text: behind a pooler, a
 * connection of the server can have statements of other processes.
 */
export interface NamedStatement {
  readonly name: string
  readonly text: string
}

/**
 * Runs a statement on a connection and returns its rows as arrays. Rejects when the answer takes too long; the
 * connection must not be used after that.
 */
export async function queryInTime<R extends unknown[]>(
  client: PoolClient,
  statement: string | NamedStatement,
  values: readonly unknown[] = [],
  timeoutMs: number = QUERY_TIMEOUT_MS,
): Promise<readonly R[]> {
  const query: TimedQuery = {
    ...(typeof statement === 'string' ? { text: statement } : statement),
    values: [...values],
    rowMode: 'array',
    types: TEXT_TYPES,
    query_timeout: timeoutMs,
  }
  return (await client.query<R>(query)).rows
}

const [BOOL, JSONB] = [16, 3802]

/** Leaves values as text, except booleans and JSON, because most of them are never read. */
const TEXT_TYPES: CustomTypesConfig = {
  getTypeParser: (oid: number) => {
    if (oid === BOOL) return (text: string) => text === 't'
    return oid === JSONB ? (text: string) => JSON.parse(text) as unknown : (text: string) => text
  },
}

/** A query with a timeout. `pg` accepts it, but its types do not declare it. */
interface TimedQuery extends QueryArrayConfig {
  readonly query_timeout: number
}

/**
 * Runs a statement on a connection of the pool. Rejects with the server's error, or with one for which
 * `isRejectedByServer` is false; the connection is then not used again.
 */
export async function queryWithTimeout<R extends unknown[]>(
  pool: Pool,
  statement: string | NamedStatement,
  values: readonly unknown[],
): Promise<readonly R[]> {
  const { client, release } = await borrow(pool, QUERY_TIMEOUT_MS)
  try {
    const rows = await queryInTime<R>(client, statement, values)
    release(true)
    return rows
  } catch (error) {
    release(isRejectedByServer(error))
    throw error
  }
}
