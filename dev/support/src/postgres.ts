import { Pool } from 'pg'
import { urlOf } from './services.ts'

/** Returns a pool that survives a restart of the server. */
export function poolOn(connectionString: string, max = 10): Pool {
  const pool = new Pool({ connectionString, max })
  // A server that restarts ends idle connections. The pool opens new ones.
  pool.on('error', () => undefined)
  return pool
}

/** Ignores the errors of connections that end with their database, those in use included. */
export function ignoreConnectionErrors(pool: Pool): Pool {
  const ignore = () => undefined
  pool.on('error', ignore)
  pool.on('connect', (client) => client.on('error', ignore))
  return pool
}

/** Creates an empty database on the PostgreSQL of `dev/services` and returns its address. Replaces one of that name. */
export async function emptyDatabase(name: string, service = 'postgres'): Promise<string> {
  return createDatabase(await urlOf(service), name)
}

/**
 * Settings that change how a session reads, writes or names values. With `REDRIVE_HOSTILE_POSTGRES=settings`, each
 * database for tests gets them as its defaults; with `isolation`, also another isolation level. The values are SQL.
 */
const HOSTILE_SETTINGS: Readonly<Record<string, string>> = {
  search_path: 'hostile',
  bytea_output: 'escape',
  datestyle: `'SQL, DMY'`,
  intervalstyle: 'sql_standard',
  timezone: `'Australia/Eucla'`,
  standard_conforming_strings: 'off',
  array_nulls: 'off',
  extra_float_digits: '-15',
  statement_timeout: `'20s'`,
}

function hostileSettings(): Readonly<Record<string, string>> {
  const wanted = process.env['REDRIVE_HOSTILE_POSTGRES']
  if (wanted === undefined) return {}
  return wanted === 'isolation'
    ? { ...HOSTILE_SETTINGS, default_transaction_isolation: `'repeatable read'` }
    : HOSTILE_SETTINGS
}

/** Creates an empty database on a server and returns its address. Replaces one of that name. */
export async function createDatabase(serverUrl: string, name: string): Promise<string> {
  await onServer(serverUrl, async (server) => {
    await server.query(`drop database if exists ${name} with (force)`)
    await server.query(`create database ${name}`)
    // The role has the name of the schema, so its default search_path would find the schema. The
    // roles of users do not have this name.
    await server.query(`alter database ${name} set search_path = public`)
    for (const [setting, value] of Object.entries(hostileSettings())) {
      await server.query(`alter database ${name} set ${setting} = ${value}`)
    }
  })
  return at(serverUrl, name)
}

/** Drops a database, also while it is in use. */
export async function dropDatabase(url: string): Promise<void> {
  const name = new URL(url).pathname.slice(1)
  await onServer(at(url, 'postgres'), (server) =>
    server.query(`drop database if exists ${name} with (force)`),
  )
}

async function onServer(url: string, work: (server: Pool) => Promise<unknown>): Promise<void> {
  const server = poolOn(url, 1)
  try {
    await work(server)
  } finally {
    await server.end()
  }
}

function at(url: string, database: string): string {
  const changed = new URL(url)
  changed.pathname = `/${database}`
  return changed.href
}
