import { Pool } from 'pg'
import type { Secret } from '../config/secret.ts'
import type { Config } from '../config/schema.ts'
import { omitUndefined } from '../omit-undefined.ts'
import type { Log } from './log.ts'

/** Connection pools of the databases in the config. */
export interface Pools {
  /** Pool of the server's database. */
  readonly own: Pool
  /** Separate pool for health checks, so that they do not wait for other queries. */
  readonly health: Pool
  /** Returns the pool of another database; for undefined, the pool of the server. */
  at(url: Secret | undefined): Pool
  close(): Promise<void>
}

/** 5 connections: sources and inboxes in other databases run few queries concurrently. */
const OTHER_MAX = 5
/** 10 s: longer than a healthy connection attempt, shorter than users wait. */
const CONNECT_MS = 10_000
/** 2 s: a database that needs longer for a health check cannot serve requests. */
const HEALTH_MS = 2_000

export function createPools({ database }: Config, log: Log): Pools {
  const pools = new Map<string, Pool>()
  const make = (name: string, url: string, max: number, timeoutMs?: number) => {
    const pool = new Pool({
      connectionString: url,
      max,
      application_name: `redrive ${name}`,
      connectionTimeoutMillis: timeoutMs ?? CONNECT_MS,
      ...omitUndefined({ query_timeout: timeoutMs }),
    })
    // The event concerns an idle connection. The next query gets another connection.
    pool.on('error', (error) => log.warn(`Lost a connection to the database: ${error.message}`))
    return pool
  }
  const url = database.url.reveal()
  const own = make('server', url, database.connections)
  const health = make('health', url, 1, HEALTH_MS)
  pools.set(url, own)
  return {
    own,
    health,
    at(other) {
      const text = other?.reveal() ?? url
      const pool = pools.get(text) ?? make('source', text, OTHER_MAX)
      pools.set(text, pool)
      return pool
    },
    async close() {
      await Promise.all([health, ...pools.values()].map((pool) => pool.end()))
    },
  }
}
