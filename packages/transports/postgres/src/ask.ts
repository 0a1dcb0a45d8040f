import { RedriveError } from '@redrive/core'
import type { CustomTypesConfig, Pool, PoolClient, QueryArrayConfig } from 'pg'

/** 10 s for an answer: far beyond any healthy one, and how a half-open connection is noticed. */
const ANSWER_MS = 10_000

/** Asks, and gives up on an answer that takes too long; the connection is of no use then. */
export async function askIn<R extends unknown[]>(
  client: PoolClient,
  text: string,
  values: readonly unknown[],
  withinMs: number = ANSWER_MS,
): Promise<readonly R[]> {
  const question: TimedQuery = {
    text,
    values: [...values],
    rowMode: 'array',
    types: PLAIN,
    query_timeout: withinMs,
  }
  return (await client.query<R>(question)).rows
}

const [BOOL, JSONB] = [16, 3802]

/** Text as it came, but for yes and no and for JSON: most of it is never looked at. */
const PLAIN: CustomTypesConfig = {
  getTypeParser: (oid: number) => {
    if (oid === BOOL) return (text: string) => text === 't'
    return oid === JSONB ? (text: string) => JSON.parse(text) as unknown : (text: string) => text
  },
}

/** `pg` takes a limit for each question, and does not say so in its types. */
interface TimedQuery extends QueryArrayConfig {
  readonly query_timeout: number
}

/**
 * Runs a statement on a connection of the pool. Rejects with the server's error, or with one for which
 * `isRefusal` is false; the connection is then not used again.
 */
export async function ask<R extends unknown[]>(
  pool: Pool,
  text: string,
  values: readonly unknown[],
): Promise<readonly R[]> {
  const { client, giveBack } = borrowed(await inTime(pool))
  try {
    const rows = await askIn<R>(client, text, values)
    giveBack(true)
    return rows
  } catch (error) {
    giveBack(isRefusal(error))
    throw error
  }
}

export interface Borrowed {
  readonly client: PoolClient
  /** Back to the pool; one that is not fit for others is ended instead. */
  readonly giveBack: (isFit: boolean) => void
}

const ignore = () => undefined
const ignoreErrorsOf = (client: PoolClient): void => void client.on('error', ignore)

/**
 * Ignores the error events of idle and of new connections: without a listener they end the process, and the
 * pool replaces the connection anyway. A pool that is passed several times, or wrapped, gets one listener.
 */
export function guard(pool: Pool): Pool {
  if (pool.listeners('connect').includes(ignoreErrorsOf)) return pool
  pool.on('connect', ignoreErrorsOf)
  if (pool.listenerCount('error') === 0) pool.on('error', ignore)
  return pool
}

/** A connection of the pool, until it is given back. */
export function borrowed(client: PoolClient): Borrowed {
  // A connection that breaks says so twice: to whoever asked, and as an event, which ends the process
  // when nobody listens.
  client.on('error', ignore)
  let isOut = true
  return {
    client,
    giveBack(isFit) {
      if (!isOut) return
      isOut = false
      client.off('error', ignore)
      client.release(isFit ? undefined : true)
    },
  }
}

/**
 * The server understood and said no: nothing happened, and the connection is fine. Everything else
 * leaves open what happened, or is said by a server that is of no use: one that shuts down (57), loses
 * connections (08) or only reads (25006), as a former primary does.
 */
export function isRefusal(error: unknown): boolean {
  const { code, severity } = error as { readonly code?: unknown; readonly severity?: unknown }
  if (typeof code !== 'string' || severity !== 'ERROR') return false
  return !/^(57|08|25006)/.test(code)
}

/** A connection, or an error after a while: a pool without a limit of its own would wait for ever. */
async function inTime(pool: Pool): Promise<PoolClient> {
  let isLate = false
  const { promise: late, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => {
    isLate = true
    reject(noConnection())
  }, ANSWER_MS)
  const connecting = guard(pool)
    .connect()
    .then((client) => {
      if (isLate) client.release()
      return client
    })
  try {
    return await Promise.race([connecting, late])
  } finally {
    clearTimeout(timer)
  }
}

const noConnection = () =>
  new RedriveError(
    'UNREACHABLE',
    `No connection within ${ANSWER_MS / 1_000} s. Either the server does not answer, or all connections of the pool are in use by others: give it a larger max.`,
  )
