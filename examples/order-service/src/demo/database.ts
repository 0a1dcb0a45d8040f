import { Pool, type QueryResultRow } from 'pg'
import { prepareDatabase } from '../database.ts'

/** A separate database on the configured server; it is dropped when the demo ends. */
export class Database {
  readonly url: string
  readonly pool: Pool
  readonly #name: string
  readonly #admin: Pool
  #isThere = false

  constructor(serverUrl: string, name: string) {
    this.#name = name
    this.url = on(serverUrl, name)
    this.#admin = poolOn(on(serverUrl, 'postgres'))
    this.pool = poolOn(this.url)
  }

  async create(): Promise<void> {
    await this.#admin.query(`create database ${this.#name}`)
    this.#isThere = true
    await prepareDatabase(this.pool)
    await this.pool.query(`insert into shop.products values ('mug', 100), ('poster', 0)`)
  }

  async rows<R extends QueryResultRow>(
    text: string,
    values: readonly unknown[] = [],
  ): Promise<readonly R[]> {
    return (await this.pool.query<R>(text, [...values])).rows
  }

  async drop(): Promise<void> {
    await this.pool.end()
    if (this.#isThere) await this.#admin.query(`drop database ${this.#name} with (force)`)
    await this.#admin.end()
  }
}

function on(url: string, database: string): string {
  const other = new URL(url)
  other.pathname = `/${database}`
  return other.href
}

function poolOn(connectionString: string): Pool {
  const pool = new Pool({ connectionString, max: 3, connectionTimeoutMillis: 3_000 })
  // The next query gets the error. At the end all connections are cut on purpose.
  const ignore = () => undefined
  pool.on('error', ignore)
  pool.on('connect', (client) => client.on('error', ignore))
  return pool
}
