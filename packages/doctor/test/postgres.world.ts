import { randomBytes } from 'node:crypto'
import { migrate as migrateCatalog } from '@redrive/catalog'
import { createDatabase, dropDatabase } from '@redrive/dev-support'
import { migrate } from '@redrive/postgres'
import { Client, Pool } from 'pg'
import { POSTGRES_CHECKS, type PostgresOptions, readPostgres } from '../src/index.ts'
import { idsIn } from './ids.ts'

/** A separate database with all schemas of Redrive and the recommended settings. */
export interface PostgresWorld {
  readonly url: string
  readonly name: string
  readonly run: (text: string) => Promise<readonly Readonly<Record<string, unknown>>[]>
  /** A session that stays open until the end. */
  readonly session: (as?: string) => Promise<Client>
  readonly ids: (options?: Partial<PostgresOptions>) => Promise<readonly string[]>
  readonly end: () => Promise<void>
}

export async function postgresWorld(server: string): Promise<PostgresWorld> {
  const name = `doctor_${randomBytes(6).toString('hex')}`
  const url = await createDatabase(server, name)
  const admin = new Pool({ connectionString: server, max: 1 })
  await admin.query(`alter database ${name} set statement_timeout = '60s'`)
  await admin.query(`alter database ${name} set idle_in_transaction_session_timeout = '5min'`)
  const pool = new Pool({ connectionString: url, max: 2 })
  await migrate(pool)
  await migrateCatalog(pool)
  await pool.end()
  const sessions: Client[] = []
  const session = async (as?: string) => {
    const connectionString =
      as === undefined ? url : Object.assign(new URL(url), { username: as }).href
    const client = new Client({ connectionString })
    client.on('error', () => undefined)
    await client.connect()
    sessions.push(client)
    return client
  }
  const ids: PostgresWorld['ids'] = async (options) =>
    idsIn(POSTGRES_CHECKS, await readPostgres({ url, ...options }))
  const run: PostgresWorld['run'] = async (text) => {
    const client = new Client({ connectionString: url })
    await client.connect()
    try {
      return (await client.query<Record<string, unknown>>(text)).rows
    } finally {
      await client.end()
    }
  }
  const end = async () => {
    for (const client of sessions) await client.end()
    await admin.end()
    await dropDatabase(url)
  }
  return { url, name, run, session, ids, end }
}
