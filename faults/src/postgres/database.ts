import { randomBytes } from 'node:crypto'
import { migrate } from '@redrive/postgres'
import type { Pool } from 'pg'
import { makeTables, openDatabase } from '../harness/effects.ts'

/** The database of one run, with the schema under test and the tables of the harness. */
export interface Database {
  readonly url: string
  /** Pool for the harness alone. */
  readonly pool: Pool
  end(): Promise<void>
}

/** Returns the same address with another port of this machine. */
export function throughPort(url: string, port: number): string {
  const changed = new URL(url)
  changed.port = String(port)
  return changed.href
}

/** Business facts. Producers write them in the transaction that adds the event. */
const ORDERS = 'create table if not exists faults_orders (run text, id text)'

/** Written only by the harness. */
const BEATS = 'create table if not exists faults_beats (at timestamptz)'

const PREFIX = 'redrive_faults'

/** Creates a database on this server. It first drops databases that failed runs left for inspection. */
export async function createDatabase(serverUrl: string, scenario: string): Promise<string> {
  const server = openDatabase(serverUrl, { connections: 1 })
  const family = `${PREFIX}_${scenario.replaceAll('-', '_')}_`
  try {
    const { rows } = await server.query<{ datname: string }>(UNUSED, [`${family}%`])
    for (const { datname } of rows) await server.query(`drop database if exists "${datname}"`)
    const name = `${family}${randomBytes(4).toString('hex')}`
    await server.query(`create database "${name}"`)
    return databaseAt(serverUrl, name)
  } finally {
    await server.end()
  }
}

const UNUSED = 'select datname from pg_stat_database where datname like $1 and numbackends = 0'

function databaseAt(url: string, name: string): string {
  const changed = new URL(url)
  changed.pathname = `/${name}`
  return changed.href
}

export async function openRunDatabase(url: string): Promise<Database> {
  const pool = openDatabase(url)
  await migrate(pool)
  await makeTables(pool)
  await pool.query(ORDERS)
  await pool.query(BEATS)
  return { url, pool, end: () => pool.end() }
}

/** Runs the smallest commit that waits for the disk. */
export const beat = (pool: Pool): Promise<unknown> =>
  pool.query('insert into faults_beats values (now())')

/** Drops a database together with all its connections. */
export async function dropDatabase(url: string): Promise<void> {
  const name = new URL(url).pathname.slice(1)
  const server = openDatabase(databaseAt(url, 'postgres'), { connections: 1 })
  try {
    await server.query(`drop database if exists "${name}" with (force)`)
  } finally {
    await server.end()
  }
}

/** Returns the existing business facts, whatever response their producer got. */
export async function readOrders(pool: Pool, run: string): Promise<ReadonlySet<string>> {
  const { rows } = await pool.query<{ id: string }>('select id from faults_orders where run = $1', [
    run,
  ])
  return new Set(rows.map(({ id }) => id))
}
