import type { Pool } from 'pg'
import { afterAll } from 'vitest'
import { freshDatabase, poolOn } from './services.ts'

/** 40: five tests run concurrently, some with ten consumers, and several files share the server. */
const CONNECTIONS = 40

/** Defines the suites of a test file on a database that only this file uses. */
export async function suitesOn(
  database: string,
  ...suites: readonly ((url: string, pool: Pool) => void)[]
): Promise<void> {
  const url = await freshDatabase('postgres', database)
  const pool = poolOn(url, CONNECTIONS)
  afterAll(() => pool.end())
  await pool.query('create table public.effect (name text, number integer)')
  for (const suite of suites) suite(url, pool)
}
