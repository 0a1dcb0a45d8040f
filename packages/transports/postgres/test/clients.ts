import { sql } from 'drizzle-orm'
import { drizzle as drizzleOnPg } from 'drizzle-orm/node-postgres'
import { drizzle as drizzleOnPostgresJs } from 'drizzle-orm/postgres-js'
import knex from 'knex'
import { Kysely, PostgresDialect } from 'kysely'
import { Pool } from 'pg'
import postgresJs from 'postgres'
import { type Queryable, viaDrizzle, viaKnex, viaKysely, viaPostgresJs } from '../src/index.ts'

/** A PostgreSQL client for Node.js. */
export interface Client {
  /** Runs the work in a transaction of that client. */
  transaction(work: (tx: Queryable) => Promise<void>): Promise<void>
  end(): Promise<unknown>
}

/** 4 connections: two concurrent transactions, and others for checks. */
const MOST = 4

const pg = (url: string): Client => {
  const pool = new Pool({ connectionString: url, max: MOST })
  pool.on('error', () => undefined)
  return {
    async transaction(work) {
      const client = await pool.connect()
      try {
        await client.query('begin')
        await work(client)
        await client.query('commit')
        client.release()
      } catch (error) {
        await client.query('rollback')
        client.release()
        throw error
      }
    },
    end: () => pool.end(),
  }
}

const postgresJsClient = (url: string): Client => {
  const db = postgresJs(url, { max: MOST, onnotice: () => undefined })
  return {
    transaction: (work) => db.begin((tx) => work(viaPostgresJs(tx))),
    end: () => db.end(),
  }
}

const kysely = (url: string): Client => {
  const pool = new Pool({ connectionString: url, max: MOST })
  const db = new Kysely<unknown>({ dialect: new PostgresDialect({ pool }) })
  return {
    transaction: (work) => db.transaction().execute((tx) => work(viaKysely(tx))),
    end: () => db.destroy(),
  }
}

const drizzlePg = (url: string): Client => {
  const pool = new Pool({ connectionString: url, max: MOST })
  const db = drizzleOnPg(pool)
  return {
    transaction: (work) => db.transaction((tx) => work(viaDrizzle(tx, sql))),
    end: () => pool.end(),
  }
}

const drizzlePostgresJs = (url: string): Client => {
  const client = postgresJs(url, { max: MOST, onnotice: () => undefined })
  const db = drizzleOnPostgresJs(client)
  return {
    transaction: (work) => db.transaction((tx) => work(viaDrizzle(tx, sql))),
    end: () => client.end(),
  }
}

const knexClient = (url: string): Client => {
  const db = knex({ client: 'pg', connection: url, pool: { min: 0, max: MOST } })
  return {
    transaction: (work) => db.transaction((tx) => work(viaKnex(tx))),
    end: () => db.destroy(),
  }
}

export const CLIENTS: readonly (readonly [name: string, open: (url: string) => Client])[] = [
  ['pg', pg],
  ['postgres.js', postgresJsClient],
  ['Kysely', kysely],
  ['Drizzle on pg', drizzlePg],
  ['Drizzle on postgres.js', drizzlePostgresJs],
  ['Knex', knexClient],
]
