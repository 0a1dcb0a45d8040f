import { afterAll } from 'vitest'
import { confirming } from './confirm.suite.ts'
import { floors } from './floor.suite.ts'
import { inboxes } from './inbox.suite.ts'
import { lanes } from './lane.suite.ts'
import { leases } from './lease.suite.ts'
import { maintaining } from './maintain.suite.ts'
import { producing } from './produce.suite.ts'
import { replaying } from './replay.suite.ts'
import { schema } from './schema.suite.ts'
import { freshDatabase, poolOn } from './services.ts'
import { sinks } from './sink.suite.ts'
import { troubles } from './trouble.suite.ts'
import { waking } from './wake.suite.ts'

/** 60: five tests at once, some with ten consumers. */
const CONNECTIONS = 60

/** Everything that is ours alone and not the contract's, on a database of its own. */
export async function suitesOn(service: string): Promise<void> {
  const url = await freshDatabase(service, 'redrive_tests')
  const pool = poolOn(url, CONNECTIONS)
  afterAll(() => pool.end())
  await pool.query('create table public.effect (name text, number integer)')

  schema(url, pool)
  producing(url, pool)
  waking(url, pool)
  sinks(url, pool)
  leases(pool)
  troubles(url, pool)
  floors(url, pool)
  lanes(url, pool)
  replaying(url, pool)
  confirming(url, pool)
  inboxes(url, pool)
  maintaining(url, pool)
}
