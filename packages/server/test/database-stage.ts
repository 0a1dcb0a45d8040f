import { emptyDatabase, poolOn } from '@redrive/dev-support'
import type { Pool } from 'pg'
import { afterAll } from 'vitest'
import { migrateServer } from '../src/migrate.ts'

/** Creates a database with the server schema. Its pool ends after the tests of the file. */
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
  throw new Error('Expected a rejection.')
}
