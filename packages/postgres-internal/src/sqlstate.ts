import { isRedriveError, RedriveError } from '@redrive/core'

/** A schema of Redrive, as error messages describe it. */
export interface SchemaInfo {
  readonly name: string
  /** The call or command that migrates the schema. */
  readonly migrateCall: string
  /** The call or command that prints the migrations for an administrator. */
  readonly sqlCall: string
}

type Explanation = (schema: SchemaInfo) => string

const missing: Explanation = ({ name, migrateCall, sqlCall }) =>
  `The schema "${name}" is missing in this database, or is older than this release. Run ${migrateCall} once, or ask an administrator to run the output of ${sqlCall}.`

const forbidden: Explanation = ({ name }) =>
  `The database role has no permission on the schema "${name}". As its owner, grant the role usage on the schema. Also grant select, insert, update, delete on all its tables, usage on all its sequences and execute on all its functions.`

const READ_ONLY =
  'The server is read-only: it is a replica, or default_transaction_read_only is on. Connect to the primary.'

/** Explanations of server errors, by SQLSTATE. */
const EXPLANATIONS: Readonly<Record<string, Explanation>> = {
  // undefined_table, undefined_column, undefined_function, invalid_schema_name
  '42P01': missing,
  '42703': missing,
  '42883': missing,
  '3F000': missing,
  // insufficient_privilege
  '42501': forbidden,
  // read_only_sql_transaction
  '25006': () => READ_ONLY,
}

/** System error such as EPIPE; connection exception, invalid authorization, too many connections, shutdown. */
const CONNECTION_ERROR = /^(?:E[A-Z]+|08...|28...|53300|57P0.)$/
/** The format of an SQLSTATE: errors with such a code come from the server. */
const SQLSTATE = /^[0-9A-Z]{5}$/
/** Programming errors. They must not be reported as a database that is unreachable. */
const PROGRAMMING_ERRORS = [TypeError, RangeError, ReferenceError, SyntaxError]

/**
 * Returns an error that explains what to do, or the same error when no explanation is known. Some clients wrap
 * the error of the server, so its cause counts as well.
 */
export function explainSqlState(error: unknown, schema: SchemaInfo): unknown {
  if (isRedriveError(error)) return error
  const { cause } = (error ?? {}) as { readonly cause?: unknown }
  const code = sqlStateOf(error) ?? sqlStateOf(cause) ?? ''
  const explanation = EXPLANATIONS[code]
  if (explanation !== undefined) return mismatch(explanation(schema), error)
  return CONNECTION_ERROR.test(code) ? unreachable(error) : error
}

/** Returns the code of an error: an SQLSTATE, or the code of a system error. */
export function sqlStateOf(error: unknown): string | undefined {
  const { code } = (error ?? {}) as { readonly code?: unknown }
  return typeof code === 'string' ? code : undefined
}

/** Runs one call of `pg`, and nothing else, and replaces its errors. */
export type PgCall = <T>(call: () => Promise<T>) => Promise<T>

/**
 * Reports a lost connection as `UNREACHABLE`. Errors of `pg` for a timeout or a closed connection have no code.
 * So every error of such a call is a connection error, unless the server or a programming error caused it.
 */
export const reportUnreachable: PgCall = async (call) => {
  try {
    return await call()
  } catch (error) {
    throw isFromServer(error) || isProgrammingError(error) ? error : unreachable(error)
  }
}

/** Returns a function that explains the errors of a call, and reports a lost connection as `UNREACHABLE`. */
export const explainErrors =
  (schema: SchemaInfo): PgCall =>
  async (call) => {
    try {
      return await reportUnreachable(call)
    } catch (error) {
      throw explainSqlState(error, schema)
    }
  }

/**
 * Returns whether the server rejected the statement: nothing happened, and the connection works. After any
 * other error, the outcome is unknown or the server is not usable. It shuts down (57), loses connections (08)
 * or is read-only (25006), such as a former primary.
 */
export function isRejectedByServer(error: unknown): boolean {
  const { code, severity } = error as { readonly code?: unknown; readonly severity?: unknown }
  if (typeof code !== 'string' || severity !== 'ERROR') return false
  return !/^(57|08|25006)/.test(code)
}

export const schemaMissing = (schema: SchemaInfo): RedriveError => mismatch(missing(schema))

export const readOnlyServer = (): RedriveError => mismatch(READ_ONLY)

function isFromServer(error: unknown): boolean {
  const code = sqlStateOf(error) ?? ''
  return SQLSTATE.test(code) && !CONNECTION_ERROR.test(code)
}

const isProgrammingError = (error: unknown) =>
  PROGRAMMING_ERRORS.some((type) => error instanceof type)

function unreachable(cause: unknown): RedriveError {
  if (isRedriveError(cause)) return cause
  const reason = cause instanceof Error ? cause.message : String(cause)
  return new RedriveError('UNREACHABLE', `Cannot connect to PostgreSQL: ${reason}`, { cause })
}

const mismatch = (message: string, cause?: unknown): RedriveError =>
  new RedriveError('TOPOLOGY_MISMATCH', message, { cause })
