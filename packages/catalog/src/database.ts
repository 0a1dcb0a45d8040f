import { isRedriveError, RedriveError } from '@redrive/core'
import type { Pool, PoolClient } from 'pg'

/** Runs one statement and answers its rows. Several statements at once only without parameters. */
export type Run = <R>(text: string, values?: readonly unknown[]) => Promise<readonly R[]>

/** A connection that breaks says so twice: to whoever asked, and as an event that would end the process. */
const ignore = () => undefined

/**
 * One transaction on a connection of the pool. `settings` are statements that hold for it alone. When
 * it fails, the connection is ended instead of cleaned up: that undoes everything, whatever broke.
 */
export async function inTransaction<T>(
  pool: Pool,
  work: (run: Run) => Promise<T>,
  settings = '',
): Promise<T> {
  const client = await pool.connect()
  client.on('error', ignore)
  let isFit = false
  try {
    await client.query(`begin; ${settings}`)
    const answer = await work(runOn(client))
    await client.query('commit')
    isFit = true
    return answer
  } finally {
    client.off('error', ignore)
    client.release(!isFit)
  }
}

function runOn(client: PoolClient): Run {
  return async <R>(text: string, values?: readonly unknown[]) => {
    const { rows } = await client.query(text, values === undefined ? undefined : [...values])
    return rows as readonly R[]
  }
}

const MIGRATE = 'Run migrate(pool) once, or let an administrator run what migrationSql() prints.'
const MISSING = `The schema redrive_catalog is missing in this database, or is older than this release. ${MIGRATE}`

/** What the server says, with what to do about it. */
const SENTENCES: Readonly<Record<string, string>> = {
  // undefined_table, undefined_column, undefined_function, invalid_schema_name
  '42P01': MISSING,
  '42703': MISSING,
  '42883': MISSING,
  '3F000': MISSING,
  // insufficient_privilege
  '42501':
    'The role may not use the schema redrive_catalog. As its owner: grant usage on schema redrive_catalog to that role, then select, insert, update, delete on all tables, usage on all sequences and execute on all functions in it.',
  // read_only_sql_transaction
  '25006':
    'The server only reads: a replica, or one with default_transaction_read_only. Connect to the primary.',
}

/** query_canceled: what a statement timeout ends in. */
const CANCELLED = '57014'

/** The same error, in words that say what to do where there is something to do. */
export function explained(error: unknown): unknown {
  if (isRedriveError(error)) return error
  const code = codeOf(error) ?? ''
  const sentence = SENTENCES[code]
  if (sentence !== undefined) {
    return new RedriveError('TOPOLOGY_MISMATCH', sentence, { cause: error })
  }
  if (code === CANCELLED) return tooBroad(error)
  if (!/^(E[A-Z]+|08...|57P0.|28...)$/.test(code)) return error
  return new RedriveError(
    'UNREACHABLE',
    `PostgreSQL does not answer, or does not let us in: ${(error as Error).message}`,
    { cause: error },
  )
}

const tooBroad = (cause: unknown) =>
  new RedriveError(
    'REFUSED',
    'The search took longer than it may and was ended. Narrow it: name a group, a key or a shorter time range.',
    { cause },
  )

function codeOf(error: unknown): string | undefined {
  const { code } = (error ?? {}) as { readonly code?: unknown }
  return typeof code === 'string' ? code : undefined
}

/**
 * The server understood the values and will not have them (data exception, constraint, program limit):
 * asking again changes nothing, leaving out the value at fault does.
 */
export function isDataRefused(error: unknown): boolean {
  return /^(?:22|23|54)/.test(codeOf(error) ?? '')
}
