import { createHash } from 'node:crypto'
import { emptyDatabase, poolOn } from '@redrive/dev-support'
import type { Pool } from 'pg'
import { beforeEach, describe, expect, test } from 'vitest'
import { type Audit, createAudit } from '../src/audit/audit.ts'
import { GENESIS } from '../src/audit/chain.ts'
import { verifyAudit } from '../src/audit/verify.ts'
import { migrateServer, serverMigrationSql } from '../src/migrate.ts'
import { entry, tamper } from './audit-stage.ts'
import { rejection, serverDatabase } from './database-stage.ts'

const pool = await serverDatabase('redrive_server_audit')
let audit: Audit

beforeEach(async () => {
  await tamper(
    pool,
    'truncate redrive_server.audit',
    `update redrive_server.audit_head set sequence = 0, hash = decode('${GENESIS}', 'hex')`,
  )
  audit = createAudit({ pool })
})

describe('writing the audit log', () => {
  test('builds the documented hash chain', async () => {
    await audit.write(entry())
    await audit.write(
      entry({ caller: undefined, facts: { name: 'Zoë \u0000 "x"' }, operation: 'login' }),
    )
    const { entries } = await audit.read({})
    const [second, first] = entries
    expect(first).toMatchObject({
      sequence: 1,
      previous: GENESIS,
      person: 'https://idp.test#alice',
    })
    expect(second).toMatchObject({ sequence: 2, previous: first?.hash, person: '', via: '' })
    const { at, previous, hash } = second as NonNullable<typeof second>
    const text = `["redrive audit 1",2,${at},"","","login","done","orders","a dead letter",${JSON.stringify(
      JSON.stringify({ name: 'Zoë \u0000 "x"' }),
    )},"${previous}"]`
    expect(createHash('sha256').update(text, 'utf8').digest('hex')).toBe(hash)
    expect(await verifyAudit({ pool })).toEqual({ entries: 2, checkpoints: 0, problems: [] })
  })

  test('builds one chain when several processes write concurrently', async () => {
    const others = [poolOn(await urlOf(), 3), poolOn(await urlOf(), 3)]
    const writers = [audit, ...others.map((one) => createAudit({ pool: one }))]
    const all = writers.flatMap(({ write }, which) =>
      Array.from({ length: 100 }, (_, place) => write(entry({ subject: `${which}-${place}` }))),
    )
    await Promise.all(all)
    await Promise.all(others.map((one) => one.end()))
    const { entries, problems } = await verifyAudit({ pool })
    expect({ entries, problems }).toEqual({ entries: 300, problems: [] })
    const { rows } = await pool.query('select distinct subject from redrive_server.audit')
    expect(rows).toHaveLength(300)
  })

  test('commits the entry before the promise resolves', async () => {
    await audit.write(entry({ subject: 'now' }))
    const { rows } = await pool.query(`select from redrive_server.audit where subject = 'now'`)
    expect(rows).toHaveLength(1)
  })

  test('replaces characters that the database cannot store', async () => {
    await audit.write(entry({ subject: 'a\u0000b\ud800c', source: '' }))
    const { entries } = await audit.read({})
    expect(entries[0]).toMatchObject({ subject: 'a\ufffdb\ufffdc', source: '' })
    expect((await verifyAudit({ pool })).problems).toEqual([])
  })

  test('rejects entries that are too long and writes the others', async () => {
    const many = await Promise.allSettled([
      audit.write(entry()),
      audit.write(entry({ subject: 'x'.repeat(601) })),
      audit.write(entry({ facts: { text: 'x'.repeat(70_000) } })),
      audit.write(entry({ subject: '€'.repeat(600), source: '€'.repeat(600) })),
    ])
    expect(many.map(({ status }) => status)).toEqual([
      'fulfilled',
      'rejected',
      'rejected',
      'fulfilled',
    ])
    expect((await audit.read({})).entries).toHaveLength(2)
  })

  test('rejects while the database fails and succeeds afterwards', async () => {
    const dead = createAudit({ pool: poolOn('postgres://user@127.0.0.1:9/none') })
    expect(await rejection(dead.write(entry()))).toMatchObject({ code: 'UNREACHABLE' })
    await pool.query('alter table redrive_server.audit_head rename to head_away')
    const away = await rejection(audit.write(entry()))
    await pool.query('alter table redrive_server.head_away rename to audit_head')
    expect(away).toMatchObject({ code: 'TOPOLOGY_MISMATCH' })
    expect(away.message).toMatch(/redrive migrate/)
    await audit.write(entry())
    expect((await verifyAudit({ pool })).problems).toEqual([])
  })

  test('waits at most 5 s for a lock', async () => {
    const client = await pool.connect()
    await client.query('begin; select from redrive_server.audit_head for update')
    const error = await rejection(audit.write(entry()))
    await client.query('rollback')
    client.release()
    expect(error).toMatchObject({ code: 'UNREACHABLE' })
    expect((await audit.read({})).entries).toEqual([])
  })
})

describe('the audit table', () => {
  test.for([
    `update redrive_server.audit set person = 'bob'`,
    'delete from redrive_server.audit',
    'truncate redrive_server.audit',
    'truncate redrive_server.audit_head',
    'delete from redrive_server.audit_head',
    'update redrive_server.audit_head set sequence = sequence - 1',
    `update redrive_server.audit_head set hash = decode('00', 'hex')`,
    `set local session_replication_role = replica; delete from redrive_server.audit`,
  ])('rejects %s', async (statement) => {
    await audit.write(entry())
    const error = await rejection(pool.query(`begin; ${statement}; commit`))
    expect(error.message).toMatch(/append-only/)
    expect((await verifyAudit({ pool })).problems).toEqual([])
  })
})

describe('reading the audit log', () => {
  test('returns pages, newest first, and applies all filters', async () => {
    for (let place = 1; place <= 5; place++) {
      const source = place % 2 === 0 ? 'orders' : 'payments'
      await audit.write(
        entry({ subject: `s${place}`, source, operation: place > 3 ? 'edit' : 'discard' }),
      )
    }
    const sequences = async (query: Parameters<Audit['read']>[0]) => {
      const { entries, nextCursor } = await audit.read(query)
      return [entries.map(({ sequence }) => sequence), nextCursor]
    }
    expect(await sequences({ limit: 2 })).toEqual([[5, 4], 4])
    expect(await sequences({ limit: 2, before: 4 })).toEqual([[3, 2], 2])
    expect(await sequences({ limit: 2, before: 2 })).toEqual([[1], undefined])
    expect(await sequences({ source: 'orders' })).toEqual([[4, 2], undefined])
    expect(await sequences({ operation: 'edit', source: 'payments' })).toEqual([[5], undefined])
    expect(await sequences({ subject: 's3' })).toEqual([[3], undefined])
    expect(await sequences({ person: 'https://idp.test#alice', limit: 1 })).toEqual([[5], 5])
    expect(await sequences({ person: "' or true --" })).toEqual([[], undefined])
  })
})

describe('the schema', () => {
  test('is created once by concurrent processes', async () => {
    const url = await emptyDatabase('redrive_server_schema')
    const pools = [poolOn(url), poolOn(url), poolOn(url)]
    const applied = await Promise.all(pools.map(migrateServer))
    expect(applied.flat()).toEqual([
      '0001-tables',
      '0002-audit-key',
      '0003-audit-export',
      '0004-audit-unmasked',
      '0005-alert-ends',
      '0006-alert-failures',
    ])
    const [first] = pools as [Pool, ...Pool[]]
    expect(await migrateServer(first)).toEqual([])
    // "A" (always): the triggers also fire in logical replicas.
    const { rows } = await first.query(
      `select tgname, tgenabled from pg_trigger where tgname like 'audit%' order by tgname`,
    )
    const names = ['audit_head_grows', 'audit_head_kept', 'audit_kept']
    expect(rows).toEqual(names.map((tgname) => ({ tgname, tgenabled: 'A' })))
    await Promise.all(pools.map((one) => one.end()))
  })

  test('can be created from the SQL text, more than once', async () => {
    const url = await emptyDatabase('redrive_server_schema_text')
    const other = poolOn(url)
    await other.query(serverMigrationSql())
    await other.query(serverMigrationSql())
    expect(await migrateServer(other)).toEqual([])
    await createAudit({ pool: other }).write(entry())
    expect(await verifyAudit({ pool: other })).toMatchObject({ entries: 1, problems: [] })
    await other.end()
  })
})

async function urlOf(): Promise<string> {
  const { connectionString } = pool.options
  return connectionString as string
}
