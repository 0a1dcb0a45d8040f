import { emptyDatabase, freePort, GUARDS_OFF, poolOn } from '@redrive/dev-support'
import { catalog } from '@redrive/catalog'
import { outbox, postgres } from '@redrive/postgres'
import { consume } from '@redrive/runtime'
import { until } from '@redrive/testing'
import type { Pool } from 'pg'
import { afterAll, describe, expect, onTestFinished, test } from 'vitest'
import { verifyAudit } from '../src/audit/verify.ts'
import { migrateAll } from '../src/composition.ts'
import { readConfig } from '../src/config/load.ts'
import { grantsSql } from '../src/grants.ts'
import { serve } from '../src/serve.ts'
import { createLog } from '../src/start/log.ts'
import { rejection } from './database-stage.ts'

const OWNER = 'redrive_test_owner'
const SERVER = 'redrive_test_server'
const QUEUE = 'granted'

const url = await emptyDatabase('redrive_server_grants')
const superuser = poolOn(url, 2)
for (const role of [OWNER, SERVER]) {
  await superuser.query(
    `do $$ begin create role ${role} login; exception when duplicate_object then null; end $$`,
  )
}
await superuser.query(`grant create on database redrive_server_grants to ${OWNER}`)

const urlAs = (role: string) => {
  const changed = new URL(url)
  changed.username = role
  return changed.href
}
const owner = poolOn(urlAs(OWNER), 4)
const pool = poolOn(urlAs(SERVER), 20)
afterAll(() => Promise.all([superuser, owner, pool].map((one) => one.end())))

await migrateAll(owner)
// Twice: an administrator may run it again.
for (let time = 0; time < 2; time++) await owner.query(grantsSql(SERVER))

const daysOf = async (table: string) => {
  const { rows } = await superuser.query<{ name: string }>(
    `select inhrelid::regclass::text as name from pg_inherits
      where inhparent = $1::regclass and inhrelid::regclass::text not like '%default'`,
    [table],
  )
  return rows.map(({ name }) => name)
}
/** Removes the partitions that the owner has made, so that the server must make its own. */
async function dropDays(table: string): Promise<void> {
  for (const name of await daysOf(table)) await owner.query(`drop table ${name}`)
}

/** Fails every message until `isFixed`. */
const state = { isFixed: false }
const startConsumer = () =>
  consume(
    postgres({ pool, queue: QUEUE }),
    () => {
      if (!state.isFixed) throw new Error('price is missing')
    },
    { ...GUARDS_OFF, retry: { attempts: 1 } },
  )

async function startServer() {
  let output = ''
  const raw = {
    database: { url: urlAs(SERVER) },
    listen: `127.0.0.1:${await freePort()}`,
    auth: { development: {} },
    approval: 'anyone',
    sources: { [QUEUE]: { postgres: { queue: QUEUE } } },
    shutdown: { grace: '10s', readinessDelay: '0ms' },
  }
  const config = readConfig(raw, { env: {}, cwd: '.', from: 'test' })
  const log = createLog({ to: { write: (text: string) => (output += text) } })
  const server = await serve(config, { log })
  onTestFinished(async () => void (await server.stop()))
  const call = async <T>(path: string, body?: object): Promise<T> => {
    const response = await fetch(`${server.url}/api/v1/${path}`, {
      method: body === undefined ? 'GET' : 'POST',
      headers: { 'idempotency-key': crypto.randomUUID(), 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`)
    return (await response.json()) as T
  }
  return { server, call, output: () => output }
}

interface Run {
  readonly id: string
  readonly hash: string
  readonly state: string
  readonly counts: Readonly<Record<string, number>>
}
interface Listed {
  readonly deadLetters: readonly { readonly id: string; readonly status: string }[]
}

const codeOf = async (on: Pool, sql: string) => (await rejection(on.query(sql))).code
/** insufficient_privilege */
const DENIED = '42501'

describe('a role that does not own the tables', () => {
  test('runs the server: ingest, list, plan, replay, discard, retention, audit', async () => {
    await dropDays('redrive.outbox')
    await dropDays('redrive_catalog.dead_letter')
    const { server, call, output } = await startServer()
    const consumer = await startConsumer()
    onTestFinished(() => consumer.stop())
    const events = outbox({ queue: QUEUE })
    for (let at = 0; at < 4; at++) await events.add(pool, { type: 'order', body: { at } })
    const list = () => call<Listed>(`dead-letters?filter=source:${QUEUE}+after:1h`)
    const { deadLetters } = await until('four dead letters', list, {
      accept: (seen) => seen.deadLetters.length === 4,
    })
    const [discarded = '', ...replayed] = deadLetters.map(({ id }) => id)
    await call('dead-letters/discard', { ids: [discarded] })
    state.isFixed = true
    const plan = await call<Run>('replays', { selection: { ids: replayed }, ratePerSecond: 1_000 })
    await call(`replays/${plan.id}/approve`, { hash: plan.hash })
    const done = await until('the end of the run', () => call<Run>(`replays/${plan.id}`), {
      accept: (run) => run.state !== 'running',
    })
    expect(done).toMatchObject({ state: 'done', counts: { resolved: 3 } })
    const { entries } = await call<{ entries: readonly { operation: string }[] }>('audit')
    expect(new Set(entries.map(({ operation }) => operation))).toEqual(
      new Set(['discard', 'planReplay', 'approveReplay']),
    )
    expect(await verifyAudit({ pool })).toMatchObject({ problems: [] })
    // Made by the server, because the test removed those of the owner. Today has rows in the default partition already.
    expect((await daysOf('redrive.outbox')).length).toBeGreaterThanOrEqual(7)
    expect((await daysOf('redrive_catalog.dead_letter')).length).toBeGreaterThanOrEqual(1)
    await server.stop()
    expect(output()).not.toMatch(/permission denied|must be owner/)
  })

  test('deletes expired dead letters and drops their days', async () => {
    await owner.query(`
      update redrive_catalog.dead_letter set ingested_at = now() - interval '40 days', settled_at = now() - interval '40 days';
      update redrive_catalog.source_day set last_ingested_at = now() - interval '40 days'`)
    const result = await catalog({ pool }).maintain()
    expect(result).toMatchObject({ dropped: 1 })
    const { rows } = await pool.query('select from redrive_catalog.dead_letter')
    expect(rows).toEqual([])
  })

  test('drops old partitions of the outbox and keeps their unfinished rows', async () => {
    const { rows } = await owner.query<{ name: string }>(
      `select redrive.outbox_make_partition((now() at time zone 'UTC')::date - 9),
        'redrive.outbox_' || to_char((now() at time zone 'UTC')::date - 9, 'YYYYMMDD') as name`,
    )
    await pool.query(`call redrive.outbox_maintain('2 days', '14 days', '${QUEUE}')`)
    expect(await daysOf('redrive.outbox')).not.toContain(rows[0]?.name)
  })

  test.each([
    ["update redrive_server.audit set person = 'bob'"],
    ['delete from redrive_server.audit'],
    ['truncate redrive_server.audit'],
    ['delete from redrive_server.audit_head'],
    ['alter table redrive_server.audit disable trigger all'],
    ['drop trigger audit_kept on redrive_server.audit'],
    ["update redrive_server.audit_key set key = ''"],
    ["insert into redrive_server.migration (name) values ('9999')"],
    ['drop table redrive_catalog.dead_letter'],
    ['create table redrive_server.mine ()'],
  ])('cannot run %s', async (sql) => {
    expect(await codeOf(pool, sql)).toBe(DENIED)
  })

  test('is not the owner, and other roles cannot run the maintenance', async () => {
    expect((await rejection(owner.query(grantsSql(OWNER)))).message).toContain(
      `The role "${OWNER}" owns the tables.`,
    )
    await owner.query('rollback').catch(() => undefined)
    const { rows } = await superuser.query<{ can: boolean }>(
      `select has_function_privilege('public', 'redrive.outbox_maintenance_step(interval, interval, text[])', 'execute') as can`,
    )
    expect(rows).toEqual([{ can: false }])
  })
})
