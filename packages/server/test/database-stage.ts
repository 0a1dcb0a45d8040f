import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { Pool } from 'pg'
import { afterAll } from 'vitest'
import { migrateServer } from '../src/migrate.ts'

const ROOT = new URL('../../../', import.meta.url).pathname
const run = promisify(execFile)

/** Runs `dev/services`, which starts what is not running yet. */
export async function services(...args: readonly string[]): Promise<string> {
  const { stdout } = await run(`${ROOT}dev/services`, args, { cwd: ROOT })
  return stdout
}

export function poolOn(connectionString: string, max = 10): Pool {
  const pool = new Pool({ connectionString, max })
  pool.on('error', () => undefined)
  return pool
}

/** An empty database of the test file's own. */
export async function emptyDatabase(name: string): Promise<string> {
  await services('up', 'postgres')
  const url = new URL((await services('do', 'postgres', 'url')).trim().split('\n')[0] as string)
  const admin = poolOn(url.href, 1)
  await admin.query(`drop database if exists ${name} with (force)`)
  await admin.query(`create database ${name}`)
  await admin.end()
  url.pathname = `/${name}`
  return url.href
}

/** The same with the schema of the server in it, and a pool that ends with the file. */
export async function serverDatabase(name: string): Promise<Pool> {
  const pool = poolOn(await emptyDatabase(name), 20)
  afterAll(() => pool.end())
  await migrateServer(pool)
  return pool
}

export async function rejection(work: Promise<unknown>): Promise<Error & { code?: string }> {
  try {
    await work
  } catch (error) {
    return error as Error & { code?: string }
  }
  throw new Error('Expected to be refused.')
}
