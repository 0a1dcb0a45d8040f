import { catalog } from '@redrive/catalog'
import { emptyDatabase, poolOn, refusal } from '@redrive/dev-support'
import { MemoryBroker, memorySource } from '@redrive/memory'
import { afterAll, expect, test } from 'vitest'
import { createAudit } from '../src/audit/audit.ts'
import { migrateAll } from '../src/composition.ts'
import { readConfig } from '../src/config/load.ts'
import { putBackSource, startIngestOf } from '../src/put-back.ts'

const url = await emptyDatabase('redrive_server_put_back_audit')
const pool = poolOn(url)
afterAll(() => pool.end())
await migrateAll(pool)
const audit = createAudit({ pool })

const raw = {
  database: { url },
  auth: { development: {} },
  sources: {
    orders: { postgres: { queue: 'orders' } },
    billing: { postgres: { queue: 'billing' } },
  },
}
const config = readConfig(raw, { env: {}, cwd: '.', from: 'test' })

/** Adds the source to the catalog. */
const broker = new MemoryBroker()
await catalog({ pool }).ingest(memorySource({ broker, queue: 'orders' }), { name: 'orders' })

const written = async (operation: string) => {
  const { entries } = await audit.read({ operation })
  return entries.toReversed()
}

test('a command that changes the catalog with the config is in the audit log', async () => {
  await putBackSource(config, 'orders')
  expect(await written('putBack')).toMatchObject([
    { outcome: 'requested', source: 'orders', via: 'config' },
    { outcome: 'done', source: 'orders', facts: { total: 0, done: 0, refused: 0 } },
  ])
  await startIngestOf(config, 'orders')
  expect(await written('startIngest')).toMatchObject([
    { outcome: 'requested', source: 'orders', via: 'config' },
    { outcome: 'done', source: 'orders', via: 'config' },
  ])
})

test('a refused attempt is in the audit log', async () => {
  expect(await refusal(putBackSource(config, 'billing'))).toMatchObject({ code: 'REFUSED' })
  const entries = await written('putBack')
  expect(entries.filter(({ source }) => source === 'billing')).toMatchObject([
    { outcome: 'requested', via: 'config' },
    { outcome: 'refused', facts: { because: 'REFUSED' } },
  ])
})

test('without the audit log, nothing is changed', async () => {
  await pool.query('alter table redrive_server.audit_head rename to audit_head_away')
  await refusal(putBackSource(config, 'orders'))
  await pool.query('alter table redrive_server.audit_head_away rename to audit_head')
  const { rows } = await pool.query(
    'select ingest_stopped_at is not null as is_stopped from redrive_catalog.source',
  )
  expect(rows).toEqual([{ is_stopped: false }])
})
