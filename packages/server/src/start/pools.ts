import { Pool } from 'pg'
import type { Secret } from '../config/secret.ts'
import type { Config } from '../config/schema.ts'
import type { ClientTls } from '../config/tls.ts'
import { tlsFilesOf, type TlsFiles, type Warn } from '../tls.ts'
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

/** How to connect to a database. */
export interface Connection {
  readonly connectionString: string
  readonly ssl?: TlsFiles | false
}

/** Returns how to connect to the database of the server. */
export const connectionOf = ({ database: { url, tls } }: Config, warn?: Warn): Connection =>
  connectionTo(url, tls, { where: 'database.tls', warn })

function connectionTo(
  url: Secret,
  tls: ClientTls | undefined,
  { where, warn }: { readonly where: string; readonly warn: Warn | undefined },
): Connection {
  // With false, the driver ignores the variable PGSSLMODE.
  const ssl: TlsFiles | false | undefined = tls === false ? false : tlsFilesOf(where, tls, warn)
  return { connectionString: url.reveal(), ...(ssl === undefined ? {} : { ssl }) }
}

/** Returns a key that is equal for equal settings. */
function keyOf(url: Secret, tls: ClientTls | undefined): string {
  const settings = typeof tls === 'object' ? { ...tls, key: tls.key?.reveal() } : tls
  return JSON.stringify([url.reveal(), settings])
}

/** 5 connections: sources and inboxes in other databases run few queries concurrently. */
const OTHER_MAX = 5
/** 10 s: longer than a healthy connection attempt, shorter than users wait. */
const CONNECT_MS = 10_000
/** 2 s: a database that needs longer for a health check cannot serve requests. */
const HEALTH_MS = 2_000

export function createPools(config: Config, log: Log): Pools {
  const pools = new Map<string, Pool>()
  const make = (name: string, connection: Connection, max: number, timeoutMs?: number) => {
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
  const warn: Warn = (text) => log.warn(text)
  const connection = connectionOf(config, warn)
  const own = make('server', connection, config.database.connections)
  const health = make('health', connection, 1, HEALTH_MS)
  const { url: ownUrl, tls: ownTls } = config.database
  pools.set(keyOf(ownUrl, ownTls), own)
  return {
    own,
    health,
    at({ url, tls, where }) {
      if (url === undefined) return own
      // Without tls, the URL of the server has the settings of the server.
      if (tls === undefined && url.reveal() === ownUrl.reveal()) return own
      const key = keyOf(url, tls)
      const pool =
        pools.get(key) ?? make('source', connectionTo(url, tls, { where, warn }), OTHER_MAX)
      pools.set(key, pool)
      return pool
    },
    async close() {
      await Promise.all([health, ...pools.values()].map((pool) => pool.end()))
    },
  }
}
