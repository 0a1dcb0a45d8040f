import { emptyDatabase, poolOn } from '@redrive/dev-support'
import { migrate } from '../src/index.ts'

export { poolOn, services } from '@redrive/dev-support'

/** Creates a database for one test file, with the schema in it, and returns its address. */
export async function freshDatabase(service: string, name: string): Promise<string> {
  const url = await emptyDatabase(name, service)
  const pool = poolOn(url, 2)
  await migrate(pool)
  await pool.end()
  return url
}
