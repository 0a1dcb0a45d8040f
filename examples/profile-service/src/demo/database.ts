import { Pool } from 'pg'
import { Profiles } from '../profiles.ts'
import { lineOf } from './users.ts'

/** The demo's direct access to the table, without the proxy, in a separate schema. */
export class Database {
  readonly url: string
  readonly #schema: string
  readonly #pool: Pool

  constructor(url: string, schema: string) {
    const own = new URL(url)
    own.searchParams.set('options', `-c search_path=${schema}`)
    this.url = own.href
    this.#schema = schema
    this.#pool = new Pool({ connectionString: this.url, connectionTimeoutMillis: 3_000 })
    this.#pool.on('error', () => undefined)
  }

  async answers(): Promise<void> {
    await this.#pool.query('SELECT 1')
  }

  async create(): Promise<void> {
    await this.#pool.query(`CREATE SCHEMA ${this.#schema}`)
    await new Profiles(this.#pool).createTable()
  }

  async profiles(): Promise<readonly string[]> {
    const { rows } = await this.#pool.query<Parameters<typeof lineOf>[0]>(`
      SELECT subject, email, first_name AS "firstName", last_name AS "lastName"
      FROM profiles WHERE NOT is_deleted`)
    return rows.map(lineOf).sort()
  }

  async cleanUp(): Promise<void> {
    await this.#pool.query(`DROP SCHEMA IF EXISTS ${this.#schema} CASCADE`)
  }

  async close(): Promise<void> {
    await this.#pool.end()
  }

  /** Returns the address of the same database through a proxy on that port. */
  through(port: number): string {
    const url = new URL(this.url)
    url.hostname = '127.0.0.1'
    url.port = String(port)
    return url.href
  }

  get address(): { readonly host: string; readonly port: number } {
    const { hostname, port } = new URL(this.url)
    return { host: hostname, port: Number(port || 5432) }
  }
}
