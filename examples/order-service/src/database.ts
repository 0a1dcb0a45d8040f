import { readFileSync } from 'node:fs'
import { migrate } from '@redrive/postgres'
import { Pool, type PoolClient } from 'pg'
import { log } from './log.ts'

export function openPool(url: string, max: number): Pool {
  const pool = new Pool({ connectionString: url, max, connectionTimeoutMillis: 5_000 })
  // Both listeners are needed, or the first outage would end the process. The pool reports errors
  // of idle connections, and each connection reports its own while it is in use.
  const onError = (error: Error) => log('warn', 'database_connection_lost', { error })
  pool.on('error', onError)
  pool.on('connect', (client) => client.on('error', onError))
  return pool
}

/**
 * Creates the shop's tables, and the schema `redrive` with outbox and inbox. Run it with each
 * deployment.
 */
export async function prepareDatabase(pool: Pool): Promise<void> {
  await migrate(pool)
  await pool.query(readFileSync(new URL('../tables.sql', import.meta.url), 'utf8'))
}

/**
 * Commits everything or nothing. Your transaction comes from your ORM: adapters such as
 * `viaKysely(trx)` connect it to the outbox.
 */
export async function inTransaction(
  pool: Pool,
  work: (tx: PoolClient) => Promise<void>,
): Promise<void> {
  const tx = await pool.connect()
  try {
    await tx.query('begin')
    await work(tx)
    await tx.query('commit')
    tx.release()
  } catch (error) {
    // Ending the connection rolls back, whatever its state.
    tx.release(true)
    throw error
  }
}
