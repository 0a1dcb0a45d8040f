import { emptyDatabase, poolOn } from '@redrive/dev-support'
import type { Pool } from 'pg'
import { afterAll, expect, test } from 'vitest'
import { migrate, migrationSql, missingMigrations, type SchemaMigrations } from '../src/index.ts'

const pool = poolOn(await emptyDatabase('redrive_internal_migrations'))
afterAll(() => pool.end())

const FIRST = 'create table redrive_some.event (id integer)'
const SECOND = `insert into redrive_some.event values (1); insert into redrive_some.event values (2)`

const schemaWith = (...names: readonly string[]): SchemaMigrations => ({
  name: 'redrive_some',
  migrateCall: 'migrate(pool)',
  sqlCall: 'migrationSql()',
  migrations: Object.fromEntries(
    Object.entries({ '0001-first': FIRST, '0002-second': SECOND }).filter(([name]) =>
      names.includes(name),
    ),
  ),
  afterwards: 'insert into redrive_some.event values (3)',
})
const OLD = schemaWith('0001-first')
const CURRENT = schemaWith('0001-first', '0002-second')

async function idsIn(database: Pool): Promise<readonly number[]> {
  const { rows } = await database.query<{ id: number }>(
    'select id from redrive_some.event order by id',
  )
  return rows.map(({ id }) => id)
}

async function emptied(): Promise<void> {
  await pool.query('drop schema if exists redrive_some cascade')
}

test('applies the migrations once in several processes, then runs the last statement once', async () => {
  await emptied()
  expect(await missingMigrations(pool, CURRENT)).toEqual(['0001-first', '0002-second'])
  const applied = await Promise.all([1, 2, 3].map(() => migrate(pool, CURRENT)))
  expect(applied.flat()).toEqual(['0001-first', '0002-second'])
  expect(await missingMigrations(pool, CURRENT)).toEqual([])
  expect(await migrate(pool, CURRENT)).toEqual([])
  expect(await idsIn(pool)).toEqual([1, 2, 3])
})

test('applies only the missing migrations, and none to the schema of a newer release', async () => {
  await emptied()
  expect(await migrate(pool, OLD)).toEqual(['0001-first'])
  expect(await migrate(pool, CURRENT)).toEqual(['0002-second'])
  expect(await idsIn(pool)).toEqual([1, 2, 3, 3])
  expect(await missingMigrations(pool, OLD)).toEqual([])
  expect(await migrate(pool, OLD)).toEqual([])
})

test('the SQL text does the same, also concurrently with processes', async () => {
  const sql = migrationSql(CURRENT)
  // From the second round on, the sessions have the missing schema in their cache.
  for (let round = 1; round <= 10; round++) {
    await emptied()
    await Promise.all([1, 2].flatMap(() => [pool.query(sql), migrate(pool, CURRENT)]))
    expect(await missingMigrations(pool, CURRENT)).toEqual([])
    expect((await idsIn(pool)).filter((id) => id < 3)).toEqual([1, 2])
  }
})

test('applies nothing when one migration fails, and reports why and what to do', async () => {
  await emptied()
  const broken = { ...CURRENT, migrations: { ...CURRENT.migrations, '0003-broken': 'select 1/0' } }
  await expect(migrate(pool, broken)).rejects.toThrow(
    'Cannot migrate the schema "redrive_some": division by zero. Grant the database role CREATE on this database, or ask an administrator to run the output of migrationSql().',
  )
  expect(await missingMigrations(pool, CURRENT)).toEqual(['0001-first', '0002-second'])
})

test('needs no right to create tables when no migration is missing', async () => {
  await emptied()
  await migrate(pool, CURRENT)
  const role = 'redrive_internal_reader'
  await pool.query(`drop role if exists ${role}`)
  await pool.query(`create role ${role};
    grant usage on schema redrive_some to ${role};
    grant select on redrive_some.migration to ${role}`)
  const reader = poolOn(`${pool.options.connectionString}?options=-c%20role%3D${role}`, 1)
  try {
    expect(await migrate(reader, CURRENT)).toEqual([])
  } finally {
    await reader.end()
    await pool.query(`drop owned by ${role}; drop role ${role}`)
  }
})
