import { emptyDatabase, poolOn } from '@redrive/dev-support'
import { migrate } from '../src/index.ts'
import { DEFAULT_SCHEMA } from '../src/schema.ts'

export { poolOn, services } from '@redrive/dev-support'

/** Creates a database for one test file, with the schema in it, and returns its address. */
export async function freshDatabase(
  service: string,
  name: string,
  schema: string = DEFAULT_SCHEMA,
): Promise<string> {
  const url = await emptyDatabase(name, service)
  const pool = poolOn(url, 2)
  await migrate(pool, { schema })
  await pool.end()
  return url
}
