import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { Pool } from 'pg'
import { migrate } from '../src/index.ts'

const ROOT = new URL('../../../../', import.meta.url).pathname
const run = promisify(execFile)

/** Runs `dev/services`, which starts what is not running yet. */
export async function services(...args: readonly string[]): Promise<string> {
  const { stdout } = await run(`${ROOT}dev/services`, args, { cwd: ROOT })
  return stdout
}

/** A database of the test file's own on a running service, with the schema in it. */
export async function freshDatabase(service: string, name: string): Promise<string> {
  await services('up', service)
  const url = new URL((await services('do', service, 'url')).trim().split('\n')[0] as string)
  const admin = poolOn(url.href, 1)
  await admin.query(`drop database if exists ${name} with (force)`)
  await admin.query(`create database ${name}`)
  // The role has the name of the schema, which would find it there: nobody else's does.
  await admin.query(`alter database ${name} set search_path = public`)
  await admin.end()
  url.pathname = `/${name}`
  const pool = poolOn(url.href, 2)
  await migrate(pool)
  await pool.end()
  return url.href
}

export function poolOn(connectionString: string, max = 10): Pool {
  const pool = new Pool({ connectionString, max })
  // A server that restarts ends idle connections; the pool makes new ones.
  pool.on('error', () => undefined)
  return pool
}
