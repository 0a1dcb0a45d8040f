import { Pool } from 'pg'
import type { Secret } from '../config/secret.ts'
import type { Config } from '../config/schema.ts'
import { given } from '../given.ts'
import type { Log } from './log.ts'

/** Connections to the databases of the config. */
export interface Pools {
  /** Of the server itself. */
  readonly own: Pool
  /** For health checks alone: they must not wait behind the work. */
  readonly health: Pool
  /** Of another database; undefined: the server's own. */
  at(url: Secret | undefined): Pool
  close(): Promise<void>
}

/** 5: sources and inboxes in other databases are asked one thing at a time. */
const OTHERS = 5
/** 10 s: longer than any healthy connection takes, shorter than people wait. */
const CONNECT_MS = 10_000
/** 2 s: a database that takes longer to say that it is there does not serve anybody. */
const HEALTH_MS = 2_000

export function createPools({ database }: Config, log: Log): Pools {
  const made = new Map<string, Pool>()
  const make = (name: string, url: string, max: number, answerMs?: number) => {
    const pool = new Pool({
      connectionString: url,
      max,
      application_name: `redrive ${name}`,
      connectionTimeoutMillis: answerMs ?? CONNECT_MS,
      ...given({ query_timeout: answerMs }),
    })
    // Of a connection that nobody uses: the next one who asks gets another.
    pool.on('error', (error) => log.warn(`A connection to the database ended: ${error.message}`))
    return pool
  }
  const url = database.url.reveal()
  const own = make('server', url, database.connections)
  const health = make('health', url, 1, HEALTH_MS)
  made.set(url, own)
  return {
    own,
    health,
    at(other) {
      const text = other?.reveal() ?? url
      const pool = made.get(text) ?? make('source', text, OTHERS)
      made.set(text, pool)
      return pool
    },
    async close() {
      await Promise.all([health, ...made.values()].map((pool) => pool.end()))
    },
  }
}
