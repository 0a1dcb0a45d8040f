import { isRedriveError, RedriveError } from '@redrive/core'
import type {
  Connection,
  Pool,
  PoolClient,
  QueryConfig,
  QueryResult,
  QueryResultRow,
  Submittable,
} from 'pg'

/** Runs one statement and answers its rows. Several statements at once only without parameters. */
export type Run = <R>(text: string, values?: readonly unknown[]) => Promise<readonly R[]>

/** Adds rows in the binary format to a table: `'name (column, …)'`. Either all of them, or it rejects. */
export type Copy = (target: string, rows: Buffer) => Promise<void>

/** A connection that breaks says so twice: to whoever asked, and as an event that would end the process. */
const ignore = () => undefined

/** The name under which the server keeps the plan of a statement; undefined: it makes one each time. */
export type PlanName = (text: string) => string | undefined

/**
 * One transaction on a connection of the pool. `settings` are statements that hold for it alone. When
 * it fails, the connection is ended instead of cleaned up: that undoes everything, whatever broke.
 */
export async function inTransaction<T>(
  pool: Pool,
  work: (run: Run, copy: Copy) => Promise<T>,
  settings = '',
): Promise<T> {
  const client = await reached(() => pool.connect())
  client.on('error', ignore)
  let isFit = false
  try {
    await reached(() => client.query(`begin; ${settings}`))
    const answer = await work(runOn(client), copyOn(client))
    await reached(() => client.query('commit'))
    isFit = true
    return answer
  } finally {
    client.off('error', ignore)
    client.release(!isFit)
  }
}

/** The same for what only reads: nobody has to wait for its end. */
export async function inReading<T>(
  pool: Pool,
  work: (run: Run) => Promise<T>,
  settings: string,
  nameOf: PlanName | undefined,
): Promise<T> {
  const client = await reached(() => pool.connect())
  client.on('error', ignore)
  const giveBack = (isFit: boolean) => {
    client.off('error', ignore)
    client.release(!isFit)
  }
  try {
    await reached(() => client.query(`begin read only; ${settings}`))
    const answer = await work(runOn(client, nameOf))
    client.query('commit').then(
      () => giveBack(true),
      () => giveBack(false),
    )
    return answer
  } catch (error) {
    giveBack(false)
    throw error
  }
}

function runOn(client: PoolClient, nameOf: PlanName = () => undefined): Run {
  return async <R>(text: string, values?: readonly unknown[]) => {
    const name = nameOf(text)
    const config: QueryConfig = { name, text }
    if (values !== undefined) config.values = [...values]
    return (await reached(() => client.query(config))).rows as readonly R[]
  }
}

/** One statement on a connection of the pool; what goes wrong says what to do. */
export async function query<R extends object>(
  pool: Pool,
  text: string,
  values: readonly unknown[] = [],
): Promise<QueryResult<R & QueryResultRow>> {
  const ask = () => pool.query<R & QueryResultRow>(text, [...values])
  return explaining(() => reached(ask))
}

function copyOn(client: PoolClient): Copy {
  const copied = (target: string, rows: Buffer) =>
    new Promise<void>((resolve, reject) => {
      const text = `copy redrive_catalog.${target} from stdin (format binary)`
      client.query(new CopyIn(text, rows, (error) => (error ? reject(error) : resolve())))
    })
  return (target, rows) => reached(() => copied(target, rows))
}

/** The part of a connection that the types of `pg` leave out. */
interface CopyConnection extends Connection {
  sendCopyFromChunk(chunk: Buffer): void
  endCopyFrom(): void
}

/** A query as `pg` lets one be written: it tells these methods what the server says. */
class CopyIn implements Submittable {
  readonly #text: string
  readonly #rows: Buffer
  // `pg` replaces it when there is a `query_timeout`.
  callback: (error?: Error) => void

  constructor(text: string, rows: Buffer, callback: (error?: Error) => void) {
    this.#text = text
    this.#rows = rows
    this.callback = callback
  }

  /** The rows follow at once: where the server refuses the statement, it passes over them. */
  submit(connection: Connection): void {
    const copying = connection as CopyConnection
    copying.query(this.#text)
    copying.sendCopyFromChunk(this.#rows)
    copying.endCopyFrom()
  }

  handleCopyInResponse(): void {}

  handleCommandComplete(): void {}

  handleReadyForQuery(): void {
    this.callback()
  }

  handleError(error: Error): void {
    this.callback(error)
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

/** The answer, or the error in words that say what to do. */
export async function explaining<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw explained(error)
  }
}

/** The same error, in words that say what to do where there is something to do. */
export function explained(error: unknown): unknown {
  if (isRedriveError(error)) return error
  const code = codeOf(error) ?? ''
  const sentence = SENTENCES[code]
  if (sentence !== undefined) {
    return new RedriveError('TOPOLOGY_MISMATCH', sentence, { cause: error })
  }
  if (code === CANCELLED) return tooBroad(error)
  return AWAY.test(code) ? unreachable(error) : error
}

/** Of the system; connection exception, invalid authorization, too many connections, shutdown. */
const AWAY = /^(?:E[A-Z]+|08...|28...|53300|57P0.)$/
/** What the server said itself has such a code. */
const SAID = /^[0-9A-Z]{5}$/
/** What only a mistake of ours throws: it is no trouble of the database, and must not look like one. */
const MISTAKES = [TypeError, RangeError, ReferenceError, SyntaxError]

/**
 * For what is asked of `pg` and nothing else. It has no code for a wait that was too long or a connection
 * that was cut, so only the place where it was thrown tells what such an error is about: the way to the server.
 */
async function reached<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    const code = codeOf(error) ?? ''
    const isSaid = SAID.test(code) && !AWAY.test(code)
    const isMistake = MISTAKES.some((one) => error instanceof one)
    throw isSaid || isMistake ? error : unreachable(error)
  }
}

const unreachable = (cause: unknown) => {
  const why = cause instanceof Error ? cause.message : String(cause)
  const message = `PostgreSQL does not answer, or does not let us in: ${why}`
  return new RedriveError('UNREACHABLE', message, { cause })
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

/** invalid_sql_statement_name, duplicate_prepared_statement: the connection is not the one it was. */
export const isPlanLost = (error: unknown): boolean =>
  ['26000', '42P05'].includes(codeOf(error) ?? '')

/** unique_violation: it is there already. */
export const isDuplicate = (error: unknown): boolean => codeOf(error) === '23505'

/**
 * The server understood the values and will not have them (data exception, constraint, program limit):
 * asking again changes nothing, leaving out the value at fault does.
 */
export function isDataRefused(error: unknown): boolean {
  return /^(?:22|23|54)/.test(codeOf(error) ?? '')
}
