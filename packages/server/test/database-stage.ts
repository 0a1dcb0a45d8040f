import { emptyDatabase, poolOn } from '@redrive/dev-support'
import type { Pool } from 'pg'
import { afterAll } from 'vitest'
import { migrateServer } from '../src/migrate.ts'

/** An empty database with the schema of the server in it, and a pool that ends with the file. */
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
