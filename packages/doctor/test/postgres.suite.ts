import { migrate } from '@redrive/postgres'
import { Pool } from 'pg'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { findIn, POSTGRES_CHECKS, type PostgresOptions, readPostgres } from '../src/index.ts'
import { type PostgresWorld, postgresWorld } from './postgres.world.ts'
import { idsIn } from './ids.ts'

interface Seed {
  readonly name: string
  readonly expected: string
  /** Statements to run; `$db` is the name of the database. */
  readonly sql?: readonly string[]
  readonly seed?: (world: PostgresWorld) => Promise<void>
  readonly options?: Partial<PostgresOptions>
}

/** 6,000 rows that were changed three times, while an open session still needs the old versions. */
async function bloat(world: PostgresWorld): Promise<void> {
  const holder = await world.session()
  await holder.query('begin isolation level repeatable read')
  await holder.query('select 1')
  await world.run(`insert into redrive.outbox (queue, type, payload, headers)
    select 'q', 't', '\\x00', '{}'::jsonb from generate_series(1, 6000)`)
  for (let time = 0; time < 3; time++) await world.run('update redrive.outbox set lease_token = 1')
}

const SEEDS: readonly Seed[] = [
  {
    name: 'commits of this database that are not waited for',
    expected: 'postgres.synchronous-commit',
    sql: ['alter database $db set synchronous_commit = off'],
  },
  {
    name: 'commits of one role that are not waited for',
    expected: 'postgres.synchronous-commit',
    sql: ['alter role redrive in database $db set synchronous_commit = off'],
  },
  {
    name: 'sessions without an idle-in-transaction timeout',
    expected: 'postgres.idle-in-transaction-timeout',
    sql: ['alter database $db set idle_in_transaction_session_timeout = 0'],
  },
  {
    name: 'statements without a timeout',
    expected: 'postgres.statement-timeout',
    sql: ['alter database $db set statement_timeout = 0'],
  },
  {
    name: 'an outbox that is not vacuumed',
    expected: 'postgres.table-autovacuum',
    sql: ['alter table redrive.outbox_default set (autovacuum_enabled = off)'],
  },
  {
    name: 'an inbox that is not vacuumed',
    expected: 'postgres.table-autovacuum',
    sql: ['alter table redrive.event_handled set (autovacuum_enabled = false)'],
  },
  {
    name: 'an outbox without partitions for the days to come',
    expected: 'postgres.outbox-partitions',
    sql: [
      "do $$ begin execute 'drop table redrive.outbox_' || to_char((now() at time zone 'UTC')::date + 1, 'YYYYMMDD'); end $$",
    ],
  },
  {
    name: 'an inbox that forgets before the catalog does',
    expected: 'postgres.inbox-retention',
    sql: ["insert into redrive_catalog.source (name, retention) values ('orders', '60 days')"],
  },
  {
    name: 'an inbox that forgets before dead letters are gone',
    expected: 'postgres.inbox-retention',
    options: { inboxRetentionMs: 86_400_000, deadLetterRetentionMs: 1_209_600_000 },
  },
  {
    name: 'an outbox of an older release',
    expected: 'postgres.schema-old',
    sql: ["delete from redrive.migration where name = '0008-turn'"],
  },
  {
    name: 'a catalog of an older release',
    expected: 'postgres.schema-old',
    sql: ["delete from redrive_catalog.migration where name > '0003'"],
  },
  {
    name: 'a schema that is missing',
    expected: 'postgres.schema-missing',
    sql: ['drop schema redrive_catalog cascade'],
    options: { schemas: ['redrive', 'redrive_catalog'] },
  },
  { name: 'dead rows that cannot be removed', expected: 'postgres.bloat', seed: bloat },
  {
    name: 'a transaction that was left open',
    expected: 'postgres.old-transaction',
    seed: async (world) => {
      const client = await world.session()
      await client.query('begin')
      await client.query('select pg_current_xact_id()')
    },
    options: { oldTransactionMs: 1 },
  },
]

/** Tests each misconfiguration. `always` lists the findings of the server itself. */
export function postgresSuite(server: () => Promise<string>, always: readonly string[]): void {
  let world: PostgresWorld

  beforeEach(async () => {
    world = await postgresWorld(await server())
  }, 120_000)

  afterEach(() => world.end())

  it(`finds ${always.join() || 'nothing at all'} on what the migrations make`, async () => {
    expect(await world.ids({ schemas: ['redrive', 'redrive_catalog'] })).toEqual(always)
  })

  it.each(SEEDS)('finds $name', async ({ expected, sql = [], seed, options }) => {
    for (const text of sql) await world.run(text.replaceAll('$db', world.name))
    await seed?.(world)
    // Table statistics arrive a second later.
    await expect
      .poll(() => world.ids(options), { timeout: 20_000 })
      .toEqual([expected, ...always].sort())
  })

  it('checks the schema of the outbox that the address names', async () => {
    const pool = new Pool({ connectionString: world.url, max: 2 })
    await migrate(pool, { schema: 'order' })
    await pool.end()
    await world.run('drop schema redrive cascade')
    const url = `${world.url}?schema=order`
    const schemas = ['redrive', 'redrive_catalog'] as const
    expect(await world.ids({ url, schemas })).toEqual(always)
    expect(await world.ids({ schemas })).toContain('postgres.schema-missing')
    await world.run(`delete from "order".migration where name = '0008-turn';
      alter table "order".outbox_default set (autovacuum_enabled = off);
      do $$ begin execute 'drop table "order".outbox_' || to_char((now() at time zone 'UTC')::date + 1, 'YYYYMMDD'); end $$`)
    await expect
      .poll(
        async () =>
          findIn(POSTGRES_CHECKS, await readPostgres({ url: world.url, outboxSchema: 'order' })),
        { timeout: 20_000 },
      )
      .toEqual(
        expect.arrayContaining([
          expect.objectContaining({ check: 'postgres.schema-old', subject: 'order' }),
          expect.objectContaining({
            check: 'postgres.table-autovacuum',
            fix: 'alter table "order".outbox_default reset (autovacuum_enabled)',
          }),
          expect.objectContaining({
            check: 'postgres.outbox-partitions',
            fix: expect.stringMatching(/^select "order"\.outbox_make_partitions\(\);/) as unknown,
          }),
        ]),
      )
  })

  it('reports the session of an open transaction, and how to end it', async () => {
    const client = await world.session()
    await client.query('begin')
    const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid')
    const facts = await readPostgres({ url: world.url, oldTransactionMs: 0 })
    const [finding] = findIn(POSTGRES_CHECKS, facts).filter(
      ({ check }) => check === 'postgres.old-transaction',
    )
    expect(finding?.subject).toContain(`session ${rows[0]?.pid} of redrive`)
    expect(finding?.found).toMatch(/^idle in transaction, open for /)
    expect(finding?.fix).toContain(`pg_terminate_backend(${rows[0]?.pid})`)
  })

  it('needs only pg_monitor and usage of the schemas, and reports missing privileges', async () => {
    const role = `${world.name}_role`
    await world.run(`create role ${role} login`)
    try {
      const url = Object.assign(new URL(world.url), { username: role }).href
      const poor = await readPostgres({ url })
      expect(poor.unreadable.map(({ what }) => what)).toEqual([
        'sessions of other roles',
        'migrations of redrive',
        'migrations of redrive_catalog',
        'partitions of the outbox',
        'retention of the catalog',
      ])
      expect(idsIn(POSTGRES_CHECKS, poor)).toContain('postgres.unreadable')
      await world.run(`grant pg_monitor to ${role}; grant usage on schema redrive, redrive_catalog to ${role};
        grant select on redrive.migration, redrive_catalog.migration, redrive_catalog.source to ${role}`)
      const enough = await readPostgres({ url })
      expect(enough.unreadable).toEqual([])
      expect(idsIn(POSTGRES_CHECKS, enough)).toEqual(always)
    } finally {
      await world.run(`drop owned by ${role}; drop role ${role}`)
    }
  })

  it('returns a finding instead of an error when no server answers', async () => {
    const facts = await readPostgres({
      url: 'postgres://redrive:secret@127.0.0.1:25498/redrive',
      timeoutMs: 2_000,
    })
    expect(idsIn(POSTGRES_CHECKS, facts)).toEqual(['postgres.unreadable'])
    expect(facts.unreadable).toMatchObject([{ what: 'server', hides: 'loss' }])
    expect(JSON.stringify(facts)).not.toContain('secret')
  })
}
