import { expect, test } from 'vitest'
import { catalog, migrate } from '../src/index.ts'
import { dead, emptyDatabase, ListSource, poolOn, rows } from './rig.ts'

const url = await emptyDatabase('redrive_catalog_plans')

test('plans a query once per connection, and repeats it when the connection has lost its plans', async () => {
  const pool = poolOn(url, 1)
  try {
    await migrate(pool)
    const made = catalog({ pool })
    await made.ingest(new ListSource([dead()]))
    const asked = async () => (await made.groups({ hasOpen: true })).groups.length
    expect([await asked(), await asked()]).toEqual([1, 1])
    const kept = `select name from pg_prepared_statements where statement like '%failure_group%'`
    expect(await rows(pool, kept)).toHaveLength(1)
    // A pooler that switches connections has the same effect.
    for (const _ of [1, 2]) {
      await pool.query('deallocate all')
      expect(await asked()).toBe(1)
    }
    expect(await rows(pool, kept)).toEqual([])
  } finally {
    await pool.end()
  }
})
