import { isRedriveError } from '@redrive/core'
import type { Pool, PoolClient, QueryConfig } from 'pg'
import { borrow } from './pool.ts'
import { queryInTime } from './query.ts'
import type { PgCall } from './sqlstate.ts'

export interface TransactionOptions {
  /** The statements that begin the transaction, with settings for it. Default `begin`. */
  readonly begin?: string
  /** Runs each call of `pg`, to replace its errors. Default: errors stay unchanged. */
  readonly call?: PgCall
  /** Timeout of `begin` and `commit`. Default: that of the pool. */
  readonly timeoutMs?: number
  /** Closes the connection when it aborts. The server then rolls the transaction back. */
  readonly signal?: AbortSignal | undefined
}

/**
 * Runs the work in a separate transaction: commits when it resolves, rolls back when it rejects. Returns the
 * connection to the pool if it is reusable, and closes it otherwise.
 */
export async function inTransaction<T>(
  pool: Pool,
  work: (client: PoolClient) => Promise<T>,
  { begin = 'begin', call = (run) => run(), timeoutMs, signal }: TransactionOptions = {},
): Promise<T> {
  signal?.throwIfAborted()
  const { client, release } = await call(() => borrow(pool))
  if (signal?.aborted === true) {
    // It aborted while the work waited for a connection, which is unused.
    release(true)
    signal.throwIfAborted()
  }
  const closeConnection = () => release(false)
  signal?.addEventListener('abort', closeConnection)
  try {
    await call(() => client.query(controlQuery(begin, timeoutMs)))
    const result = await work(client)
    const { command } = await call(() => client.query(controlQuery('commit', timeoutMs)))
    if (command === 'ROLLBACK') throw notCommitted()
    release(true)
    return result
  } catch (error) {
    release(!signal?.aborted && (await canRollBack(client, error)))
    throw error
  } finally {
    signal?.removeEventListener('abort', closeConnection)
  }
}

/** A query with the timeout that `pg` accepts, but its types do not declare. */
interface ControlQuery extends QueryConfig {
  readonly query_timeout?: number
}

const controlQuery = (text: string, timeoutMs: number | undefined): ControlQuery => ({
  text,
  values: [],
  ...(timeoutMs === undefined ? {} : { query_timeout: timeoutMs }),
})

/** PostgreSQL rolls back when the client commits an aborted transaction. It reports no error. */
const notCommitted = () =>
  new Error(
    'The transaction was rolled back: a statement in it failed, and the error was ignored. Rethrow the error, or use a savepoint.',
  )

/** Rolls back and returns whether it worked. Otherwise the connection is not reusable. */
async function canRollBack(client: PoolClient, because: unknown): Promise<boolean> {
  if (isRedriveError(because, 'UNREACHABLE')) return false
  try {
    await queryInTime(client, 'rollback')
    return true
  } catch {
    return false
  }
}

/** Runs a statement and returns its rows. A text with several statements cannot have values. */
export type RunSql = <R>(text: string, values?: readonly unknown[]) => Promise<readonly R[]>

/** Returns the name of a prepared statement; undefined: the server plans the statement each time. */
export type PlanName = (text: string) => string | undefined

/** Returns a function that runs statements on a pool, or on the connection of a transaction. */
export function runSqlOn(
  on: Pool | PoolClient,
  call: PgCall,
  planName: PlanName = () => undefined,
): RunSql {
  return async <R>(text: string, values: readonly unknown[] = []) => {
    const name = planName(text)
    const query: QueryConfig = {
      text,
      values: [...values],
      ...(name === undefined ? {} : { name }),
    }
    return (await call(() => on.query(query))).rows as readonly R[]
  }
}
