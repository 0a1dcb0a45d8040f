import { readFileSync } from 'node:fs'
import { migrate } from '@redrive/postgres'
import { Pool, type PoolClient } from 'pg'
import { log } from './log.ts'

export function openPool(url: string, max: number): Pool {
  const pool = new Pool({ connectionString: url, max, connectionTimeoutMillis: 5_000 })
  // Both, or the first outage would end the process: the pool speaks for connections that nobody uses,
  // each connection for itself while someone does.
  const onError = (error: Error) => log('warn', 'database_connection_lost', { error })
  pool.on('error', onError)
  pool.on('connect', (client) => client.on('error', onError))
  return pool
}

/** Our own tables, and the schema `redrive` with outbox and inbox. Run it with each deployment. */
export async function prepareDatabase(pool: Pool): Promise<void> {
  await migrate(pool)
  await pool.query(readFileSync(new URL('../tables.sql', import.meta.url), 'utf8'))
}

/** All of it or nothing. Yours comes from your ORM: `viaKysely(trx)` and its like fit it to the outbox. */
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
    // Ending the connection rolls back, whatever state it is in.
    tx.release(true)
    throw error
  }
}
