import { isRedriveError, RedriveError } from '@redrive/core'
import type { Pool, PoolClient } from 'pg'

/** Runs one statement and answers its rows. Several statements at once only without parameters. */
export type Run = <R>(text: string, values?: readonly unknown[]) => Promise<readonly R[]>

/** A connection that breaks says so twice: to whoever asked, and as an event that would end the process. */
const ignore = () => undefined

/**
 * One transaction on a connection of the pool; `begin` may say more than that. When it fails, the connection
 * is ended instead of cleaned up: that undoes everything, whatever broke.
 */
export async function inTransaction<T>(
  pool: Pool,
  work: (run: Run) => Promise<T>,
  begin = 'begin',
): Promise<T> {
  const client = await explaining(() => pool.connect())
  client.on('error', ignore)
  let isFit = false
  try {
    const run = runOn(client)
    await run(begin)
    const answer = await work(run)
    await run('commit')
    isFit = true
    return answer
  } finally {
    client.off('error', ignore)
    client.release(!isFit)
  }
}

/** What goes wrong is said in words that say what to do. */
export const runOn =
  (on: Pool | PoolClient): Run =>
  async <R>(text: string, values: readonly unknown[] = []) => {
    const ask = () => (values.length === 0 ? on.query(text) : on.query(text, [...values]))
    return (await explaining(ask)).rows as readonly R[]
  }

const MISSING =
  'The schema redrive_server is missing in this database, or is older than this release. Run `redrive migrate` once, or let an administrator run what `redrive migrate --print-sql` prints.'

/** What the database says, with what to do about it. */
const SENTENCES: Readonly<Record<string, string>> = {
  // undefined_table, undefined_column, undefined_function, invalid_schema_name
  '42P01': MISSING,
  '42703': MISSING,
  '42883': MISSING,
  '3F000': MISSING,
  // insufficient_privilege
  '42501':
    'The role may not use the schema redrive_server. As its owner: grant usage on schema redrive_server to that role, then select, insert, update, delete on all tables in it.',
  // read_only_sql_transaction
  '25006':
    'The database only reads: a replica, or one with default_transaction_read_only. Connect to the primary.',
}

/** Of the system, such as EPIPE; connection exception, invalid authorization, too many connections, shutdown. */
const AWAY = /^(?:E[A-Z]+|08...|28...|53300|57P0.)$/

async function explaining<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw explained(error)
  }
}

/** What the database said itself has a code of five characters; all else is about the way to it. */
function explained(error: unknown): unknown {
  if (isRedriveError(error)) return error
  const { code: said } = (error ?? {}) as { readonly code?: unknown }
  const code = typeof said === 'string' ? said : ''
  const sentence = SENTENCES[code]
  if (sentence !== undefined) {
    return new RedriveError('TOPOLOGY_MISMATCH', sentence, { cause: error })
  }
  if (/^[0-9A-Z]{5}$/.test(code) && !AWAY.test(code)) return error
  const why = error instanceof Error ? error.message : String(error)
  return new RedriveError(
    'UNREACHABLE',
    `PostgreSQL does not answer, or does not let us in: ${why}`,
    { cause: error },
  )
}
