import { Pool } from 'pg'
import type { Secret } from '../config/secret.ts'
import type { Config } from '../config/schema.ts'
import type { ClientTls } from '../config/tls.ts'
import { tlsFilesOf, type TlsFiles } from '../tls.ts'
import { omitUndefined } from '../omit-undefined.ts'
import type { Log } from './log.ts'

/** Connection pools of the databases in the config. */
export interface Pools {
  /** Pool of the server's database. */
  readonly own: Pool
  /** Separate pool for health checks, so that they do not wait for other queries. */
  readonly health: Pool
  /** Returns the pool of another database; without a URL, the pool of the server. */
  at(other: OtherDatabase): Pool
  close(): Promise<void>
}

/** Where another database is, in the config. */
export interface OtherDatabase {
  readonly url: Secret | undefined
  readonly tls: ClientTls | undefined
  /** The setting with `tls`, for errors. */
  readonly where: string
}

/** Returns how to connect to the database of the server. */
export const connectionOf = ({
  database: { url, tls },
}: Config): { readonly connectionString: string; readonly ssl?: TlsFiles } => ({
  connectionString: url.reveal(),
  ...omitUndefined({ ssl: tlsFilesOf('database.tls', tls) }),
})

/** 5 connections: sources and inboxes in other databases run few queries concurrently. */
const OTHER_MAX = 5
/** 10 s: longer than a healthy connection attempt, shorter than users wait. */
const CONNECT_MS = 10_000
/** 2 s: a database that needs longer for a health check cannot serve requests. */
const HEALTH_MS = 2_000

export function createPools(config: Config, log: Log): Pools {
  const pools = new Map<string, Pool>()
  const make = (
    name: string,
    connection: ReturnType<typeof connectionOf>,
    max: number,
    timeoutMs?: number,
  ) => {
    const pool = new Pool({
      ...connection,
      max,
      application_name: `redrive ${name}`,
      connectionTimeoutMillis: timeoutMs ?? CONNECT_MS,
      ...omitUndefined({ query_timeout: timeoutMs }),
    })
    // The event concerns an idle connection. The next query gets another connection.
    pool.on('error', (error) => log.warn(`Lost a connection to the database: ${error.message}`))
    return pool
  }
  const connection = connectionOf(config)
  const own = make('server', connection, config.database.connections)
  const health = make('health', connection, 1, HEALTH_MS)
  pools.set(connection.connectionString, own)
  return {
    own,
    health,
    at({ url, tls, where }) {
      if (url === undefined) return own
      const connectionString = url.reveal()
      const ssl = tlsFilesOf(where, tls)
      const other = { connectionString, ...omitUndefined({ ssl }) }
      const pool = pools.get(connectionString) ?? make('source', other, OTHER_MAX)
      pools.set(connectionString, pool)
      return pool
    },
    async close() {
      await Promise.all([health, ...pools.values()].map((pool) => pool.end()))
    },
  }
}
