import { RedriveError } from '@redrive/core'
import { until } from '@redrive/testing'
import { Pool, type PoolClient } from 'pg'
import { expect, test } from 'vitest'
import { explained, inTransaction, query } from '../src/database.ts'
import { catalog } from '../src/index.ts'
import { migrated, refusal, rows } from './rig.ts'

const pool = await migrated('redrive_catalog_database')
const connectionString = pool.options.connectionString as string
const MISSING_ID = '00000000-0000-0000-0000-000000000000'

test('reports a timeout of the pool as an unreachable database', async () => {
  const small = new Pool({ connectionString, max: 1 })
  const held = await small.connect()
  small.options.connectionTimeoutMillis = 50
  const made = catalog({ pool: small })
  const calls = [
    made.group(MISSING_ID),
    made.resolveGroup(MISSING_ID),
    made.replays.runs(),
    made.replays.run(MISSING_ID),
    made.replays.items({ run: MISSING_ID }),
    made.replays.pause(MISSING_ID, { by: 'ada' }),
    made.replays.freezeReason(),
    made.replays.plan({ selection: { group: MISSING_ID }, by: 'ada', request: 'a' }),
  ]
  for (const error of await Promise.all(calls.map(refusal))) {
    expect(error).toMatchObject({ code: 'UNREACHABLE' })
    expect(error.message).toContain('timeout exceeded')
  }
  held.release()
  await small.end()
})

test('reports a connection that closes during a query as an unreachable database', async () => {
  const cut = new Pool({ connectionString })
  cut.on('error', () => undefined)
  const clients: PoolClient[] = []
  cut.on('connect', (client) => void clients.push(client))
  const holder = await pool.connect()
  await holder.query('begin; lock table redrive_catalog.failure_group, redrive_catalog.replay_run')
  const made = catalog({ pool: cut, searchTimeout: '1m' })
  const calls = [made.group(MISSING_ID), made.replays.runs(), made.resolveGroup(MISSING_ID)].map(
    refusal,
  )
  await until(
    'all wait for the lock',
    async () => (await rows(pool, WAITING)).length === calls.length,
  )
  for (const client of clients) streamOf(client).destroy()
  for (const error of await Promise.all(calls)) {
    expect(error).toMatchObject({ code: 'UNREACHABLE' })
    expect(error.message).toContain('terminated')
  }
  await holder.query('rollback')
  holder.release()
  await cut.end()
})

test('reports too many connections as an unreachable database', () => {
  const full = Object.assign(new Error('sorry, too many clients already'), { code: '53300' })
  expect(explained(full)).toMatchObject({ code: 'UNREACHABLE' })
})

test('does not report a programming error as an unreachable database', async () => {
  const circular: Record<string, unknown> = {}
  circular['self'] = circular
  const statement = 'select $1::jsonb'
  expect(await refusal(query(pool, statement, [circular]))).toBeInstanceOf(TypeError)
  const inside = inTransaction(pool, (run) => run(statement, [circular]))
  expect(await refusal(inside)).toBeInstanceOf(TypeError)
  const ours = new Error('a part is missing')
  expect(await refusal(inTransaction(pool, () => Promise.reject(ours)))).toBe(ours)
  expect(explained(ours)).toBe(ours)
})

test('keeps an error of the server about a statement unchanged', async () => {
  expect(await refusal(query(pool, 'select 1/0'))).toMatchObject({ code: '22012' })
  const missing = await refusal(query(pool, 'select from redrive_catalog.nothing'))
  expect(missing).toBeInstanceOf(RedriveError)
  expect(missing).toMatchObject({ code: 'TOPOLOGY_MISMATCH' })
})

/** The sessions that wait for a lock. */
const WAITING = `
select pid from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`

/** Returns the socket of a client, which is missing in the types of `pg`. */
const streamOf = (client: PoolClient) =>
  (client as unknown as { readonly connection: { readonly stream: { destroy(): void } } })
    .connection.stream
