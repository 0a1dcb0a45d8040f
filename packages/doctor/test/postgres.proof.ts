import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { ROOT } from '@redrive/dev-support'
import { Client } from 'pg'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { POSTGRES_CHECKS, diagnose, exitCodeOf, readPostgres } from '../src/index.ts'
import { postgresSuite } from './postgres.suite.ts'
import { type PostgresWorld, postgresWorld } from './postgres.world.ts'
import { idsIn } from './ids.ts'

const run = promisify(execFile)
const pair = async (...args: readonly string[]) =>
  (await run('bash', [`${import.meta.dirname}/private.sh`, 'pair', ...args], { cwd: ROOT })).stdout

describe('PostgreSQL, a primary and a synchronous replica', () => {
  let primary = ''
  let replica = ''

  const asAdmin = async (...statements: readonly string[]) => {
    const client = new Client({ connectionString: primary })
    await client.connect()
    for (const text of statements) await client.query(text)
    await client.end()
  }

  beforeAll(async () => {
    await pair('up')
    const urls = (await pair('url')).trim().split('\n')
    primary = urls[0] ?? ''
    replica = urls[1] ?? ''
    await asAdmin(
      'alter system reset all',
      'select pg_reload_conf()',
      // Remains of a killed run.
      "select pg_drop_replication_slot(slot_name) from pg_replication_slots where slot_name = 'abandoned'",
    )
  }, 240_000)

  afterAll(() => pair('down'), 120_000)

  postgresSuite(() => Promise.resolve(primary), [])

  describe('the server itself', () => {
    let world: PostgresWorld
    const ids = () => world.ids()

    beforeAll(async () => {
      world = await postgresWorld(primary)
    }, 120_000)

    afterEach(async () => {
      await asAdmin('alter system reset all', 'select pg_reload_conf()')
      await vi.waitFor(async () => {
        const left = await ids()
        if (left.length > 0) throw new Error(`still found: ${left.join()}`)
      }, 30_000)
    }, 120_000)

    afterAll(() => world.end())

    it('has grade A, and a command would exit with 0', async () => {
      const report = await diagnose({
        postgres: { url: world.url, schemas: ['redrive', 'redrive_catalog'] },
      })
      expect(report.graded).toEqual({ grade: 'A', cappedBy: [] })
      expect(exitCodeOf(report)).toBe(0)
    })

    it.each([
      ['fsync off', 'postgres.fsync', 'fsync = off'],
      ['full_page_writes off', 'postgres.full-page-writes', 'full_page_writes = off'],
      ['synchronous_commit off', 'postgres.synchronous-commit', 'synchronous_commit = off'],
      [
        'commits that the replica need not have',
        'postgres.commit-not-on-standby',
        'synchronous_commit = local',
      ],
      [
        'no synchronous replica',
        'postgres.no-synchronous-standby',
        "synchronous_standby_names = ''",
      ],
      [
        'a synchronous replica that is not there',
        'postgres.standby-missing',
        "synchronous_standby_names = 'elsewhere'",
      ],
      ['autovacuum off', 'postgres.autovacuum', 'autovacuum = off'],
      ['statements without a timeout', 'postgres.statement-timeout', 'statement_timeout = 0'],
    ])(
      'finds %s',
      async (_, expected, setting) => {
        // A setting of the database would win.
        await asAdmin(`alter database ${world.name} reset statement_timeout`)
        await asAdmin(`alter system set ${setting}`, 'select pg_reload_conf()')
        await expect.poll(ids, { timeout: 30_000 }).toEqual([expected])
      },
      120_000,
    )

    it('finds a replica that has stopped', async () => {
      await pair('stop_replica')
      try {
        const expected = ['postgres.no-copy', 'postgres.standby-missing']
        await expect.poll(ids, { timeout: 30_000 }).toEqual(expected)
      } finally {
        await pair('start_replica')
      }
    }, 120_000)

    it('finds an unused replication slot', async () => {
      await asAdmin("select pg_create_physical_replication_slot('abandoned', true)")
      try {
        expect(await ids()).toEqual(['postgres.abandoned-slot'])
      } finally {
        await asAdmin("select pg_drop_replication_slot('abandoned')")
      }
    })

    it('finds a prepared transaction that is not ended', async () => {
      const client = await world.session()
      await client.query(
        "begin; insert into redrive_catalog.source (name, retention) values ('x', '1 day'); prepare transaction 'orphan'",
      )
      await expect
        .poll(() => world.ids({ oldTransactionMs: 1 }))
        .toEqual(['postgres.prepared-transaction'])
      await client.query("rollback prepared 'orphan'")
    })

    it('finds that connections are running out', async () => {
      const most = await Promise.all(Array.from({ length: 80 }, () => world.session()))
      expect(await ids()).toEqual(['postgres.connections'])
      await Promise.all(most.map((client) => client.end()))
    })

    it('finds that the address leads to a replica', async () => {
      const url = Object.assign(new URL(replica), { pathname: `/${world.name}` }).href
      await expect
        .poll(async () => idsIn(POSTGRES_CHECKS, await readPostgres({ url })), { timeout: 20_000 })
        .toEqual(['postgres.replica'])
    })
  })
})
