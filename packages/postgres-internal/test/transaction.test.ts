import { emptyDatabase, poolOn } from '@redrive/dev-support'
import { afterAll, beforeEach, expect, test } from 'vitest'
import { explainErrors, inTransaction, reportUnreachable, runSqlOn } from '../src/index.ts'

const pool = poolOn(await emptyDatabase('redrive_internal_transaction'), 1)
afterAll(() => pool.end())
await pool.query('create table public.effect (number integer primary key)')
beforeEach(() => pool.query('delete from public.effect'))

const INSERT = 'insert into public.effect values (1)'

async function effects(): Promise<number> {
  return (await pool.query('select from public.effect')).rowCount ?? 0
}

async function backend(): Promise<number> {
  const { rows } = await pool.query<{ pid: number }>('select pg_backend_pid() as pid')
  return rows[0]?.pid ?? 0
}

const rejection = (work: Promise<unknown>) =>
  work.then(
    () => undefined,
    (error: unknown) => error,
  )

test('commits when the work resolves, and returns its result', async () => {
  const result = await inTransaction(pool, async (client) => {
    await client.query(INSERT)
    return 'done'
  })
  expect([result, await effects()]).toEqual(['done', 1])
})

test('rolls back when the work rejects, with its error, and keeps the connection', async () => {
  const before = await backend()
  const error = new Error('on purpose')
  const failing = inTransaction(pool, async (client) => {
    await client.query(INSERT)
    throw error
  })
  expect(await rejection(failing)).toBe(error)
  expect([await effects(), await backend()]).toEqual([0, before])
})

test('rejects when the work ignored the error of a statement', async () => {
  const swallowing = inTransaction(pool, async (client) => {
    await client.query(INSERT)
    await rejection(client.query('select 1/0'))
  })
  await expect(swallowing).rejects.toThrow('The transaction was rolled back')
  expect(await effects()).toBe(0)
})

test('closes a connection that is lost, and reports it', async () => {
  const before = await backend()
  const lost = inTransaction(
    pool,
    (client) => {
      const run = runSqlOn(client, reportUnreachable)
      return run('select pg_terminate_backend(pg_backend_pid())')
    },
    { call: reportUnreachable },
  )
  expect(await rejection(lost)).toMatchObject({ code: 'UNREACHABLE' })
  expect(await backend()).not.toBe(before)
})

test('closes the connection when the signal aborts, and rolls back', async () => {
  const before = await backend()
  const controller = new AbortController()
  const aborted = inTransaction(
    pool,
    async (client) => {
      await client.query(INSERT)
      controller.abort()
      await client.query('select 1')
    },
    { signal: controller.signal },
  )
  expect(await rejection(aborted)).toBeInstanceOf(Error)
  expect(await backend()).not.toBe(before)
  expect(await effects()).toBe(0)
})

test('runs several statements at the beginning, and values as parameters', async () => {
  const call = explainErrors({ name: 'public', migrateCall: 'migrate()', sqlCall: 'sql()' })
  const rows = await inTransaction(
    pool,
    (client) => runSqlOn(client, call)('select $1::integer + 1 as sum', [1]),
    { begin: "begin read only; set local statement_timeout = '5s'", call },
  )
  expect(rows).toEqual([{ sum: 2 }])
})
