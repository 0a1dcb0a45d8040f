import { isRedriveError, RedriveError } from '@redrive/core'

const MIGRATE = 'Run migrate(pool) once, or let an administrator run what migrationSql() prints.'

/** What the server says, with what to do about it. */
const SENTENCES: Readonly<Record<string, string>> = {
  // undefined_table, undefined_function, invalid_schema_name
  '42P01': `The schema redrive is missing in this database, or is older than this release. ${MIGRATE}`,
  '42883': `The schema redrive is missing in this database, or is older than this release. ${MIGRATE}`,
  '3F000': `The schema redrive is missing in this database. ${MIGRATE}`,
  // insufficient_privilege
  '42501':
    'The role may not use the schema redrive. As its owner: grant usage on schema redrive to that role, then select, insert, update, delete on all tables, usage on all sequences and execute on all functions in it.',
  // read_only_sql_transaction
  '25006':
    'The server only reads: a replica, or one with default_transaction_read_only. Connect to the primary.',
}

/** The same error, in words that say what to do where there is something to do. */
export function explained(error: unknown): unknown {
  if (isRedriveError(error)) return error
  const code = codeOf(error) ?? codeOf((error as { readonly cause?: unknown } | null)?.cause)
  const sentence = code === undefined ? undefined : SENTENCES[code]
  if (sentence !== undefined) {
    return new RedriveError('TOPOLOGY_MISMATCH', sentence, { cause: error })
  }
  if (code === undefined || !/^(E[A-Z]+|08...|57P0.|28...)$/.test(code)) return error
  return new RedriveError(
    'UNREACHABLE',
    `PostgreSQL does not answer, or does not let us in: ${(error as Error).message}`,
    { cause: error },
  )
}

function codeOf(error: unknown): string | undefined {
  const { code } = (error ?? {}) as { readonly code?: unknown }
  return typeof code === 'string' ? code : undefined
}

export const notMigrated = (): RedriveError =>
  new RedriveError('TOPOLOGY_MISMATCH', SENTENCES['42883'] ?? '')

export const readOnly = (): RedriveError =>
  new RedriveError('TOPOLOGY_MISMATCH', SENTENCES['25006'] ?? '')
