import { RedriveError } from '@redrive/core'
import { withTimeout } from '@redrive/runtime/internal'
import type { Pool, PoolClient } from 'pg'

/** A connection of a pool, until it is released. */
export interface PooledClient {
  readonly client: PoolClient
  /** Returns the connection to the pool, or closes it when it is not reusable. Later calls do nothing. */
  readonly release: (isReusable: boolean) => void
}

const ignore = () => undefined
const ignoreErrorsOf = (client: PoolClient): void => void client.on('error', ignore)

/**
 * Ignores the error events of idle and of new connections: without a listener they end the process, and the
 * pool replaces the connection anyway. A pool that is passed several times, or wrapped, gets one listener.
 */
export function ignorePoolErrors(pool: Pool): Pool {
  if (pool.listeners('connect').includes(ignoreErrorsOf)) return pool
  pool.on('connect', ignoreErrorsOf)
  if (pool.listenerCount('error') === 0) pool.on('error', ignore)
  return pool
}

/**
 * Returns a connection of the pool. Rejects when none is available within the timeout; without one, it waits
 * as long as the pool does, which can be forever.
 */
export async function borrow(pool: Pool, timeoutMs?: number): Promise<PooledClient> {
  const connecting = ignorePoolErrors(pool).connect()
  const client = await (timeoutMs === undefined ? connecting : inTime(connecting, timeoutMs))
  // A broken connection reports the error twice: to the caller and as an event. Without a listener, the
  // event ends the process.
  client.on('error', ignore)
  let isBorrowed = true
  return {
    client,
    release(isReusable) {
      if (!isBorrowed) return
      isBorrowed = false
      client.off('error', ignore)
      client.release(isReusable ? undefined : true)
    },
  }
}

function inTime(connecting: Promise<PoolClient>, timeoutMs: number): Promise<PoolClient> {
  return withTimeout(connecting, timeoutMs, () => {
    // A connection that arrives later goes back to the pool. If it fails instead, the pool has no connection
    // to take back.
    connecting.then((client) => client.release(), ignore)
    throw new RedriveError(
      'UNREACHABLE',
      `No PostgreSQL connection was available within ${timeoutMs / 1_000} s. Check that the server is reachable. If all connections of the pool are in use, increase "max" of the pool.`,
    )
  })
}
