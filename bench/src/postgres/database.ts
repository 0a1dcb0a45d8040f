// The server of `dev/services`, with a separate database for each candidate. So tables, statistics
// and settings are separate, and the rest of the server is unchanged.
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { dropDatabase, emptyDatabase, ignoreConnectionErrors, urlOf } from '@redrive/dev-support'
import { Client, Pool, type PoolConfig } from 'pg'

/** Tests use another server, because tests of the transport crash the usual one. */
const SERVICE = process.env['VITEST'] === undefined ? 'postgres' : 'postgres-pair'

const PREFIX = 'redrive_bench_'
/** SQLSTATE of a database with open connections. */
const OBJECT_IN_USE = '55006'

export interface Database {
  readonly url: string
  /** Pool of the benchmark: fills, counts and cleans up. Candidates open their own. */
  readonly pool: Pool
  drop(): Promise<void>
}

export async function ownDatabase(): Promise<Database> {
  const url = await emptyDatabase(`${PREFIX}${randomUUID().slice(0, 8)}`, SERVICE)
  // While this connection is open, no other run treats the database as a leftover.
  const pool = poolOf(url, { max: 1 })
  return {
    url,
    pool,
    async drop() {
      await pool.end()
      await dropDatabase(url)
    },
  }
}

/** Drops databases of killed runs. They have no connections, so dropping them succeeds. */
export async function dropLeftovers(): Promise<void> {
  await onServer(await urlOf(SERVICE), async (client) => {
    const { rows } = await client.query<{ datname: string }>(
      'select datname from pg_database where starts_with(datname, $1)',
      [PREFIX],
    )
    for (const { datname } of rows) {
      await client.query(`drop database if exists ${datname}`).catch((error: unknown) => {
        if ((error as { code?: string }).code !== OBJECT_IN_USE) throw error
      })
    }
  })
}

/**
 * Keeps connections open. A candidate waits longer for its turn than `pg` keeps them, and a new
 * connection must read the catalog and make its plans first.
 */
export const STAYING = { idleTimeoutMillis: 0 } as const

export function poolOf(url: string, options: PoolConfig = {}): Pool {
  // A failed query rejects as well. Graphile-worker expects the handler on each connection.
  return ignoreConnectionErrors(new Pool({ connectionString: url, ...STAYING, ...options }))
}

async function onServer(url: string, work: (client: Client) => Promise<unknown>): Promise<void> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    await work(client)
  } finally {
    await client.end()
  }
}

/**
 * Turns autovacuum off, so that vacuum runs between the samples. The settings apply to the
 * partitions, if there are any.
 */
export async function withoutAutovacuum(pool: Pool, table: string): Promise<void> {
  const { rows } = await pool.query<{ name: string }>(
    'select relid::regclass::text as name from pg_partition_tree($1) where isleaf',
    [table],
  )
  for (const { name } of rows) {
    await pool.query(
      `alter table ${name} set (autovacuum_enabled = off, toast.autovacuum_enabled = off)`,
    )
  }
}

/**
 * Runs before the table is filled, because the checkpoint of one sample must not fall into the
 * next. After a checkpoint, the first change of every old page is written twice. Filled pages are
 * new.
 */
export async function emptied(pool: Pool, table: string): Promise<void> {
  await pool.query(`truncate ${table}`)
  await pool.query('checkpoint')
}

/**
 * One second: no statement of the benchmark takes as long, so an older transaction is from another
 * program.
 */
const DISTURBING = `
  select count(*)::int as transactions from pg_stat_activity
  where backend_xid is not null and xact_start < now() - interval '1 second'`
const AGAIN_MS = 100
/** 5 minutes: tests that hold a transaction open on purpose have ended by then. */
const DISTURBED_MS = 300_000

/**
 * Waits until no other transaction is open. An open transaction with writes, in any database, prevents the clean-up of
 * dead rows and index entries in all of them. Every claim then reads the dead rows of all earlier claims.
 */
export async function undisturbed(pool: Pool): Promise<void> {
  const endsAt = performance.now() + DISTURBED_MS
  for (;;) {
    const { rows } = await pool.query<{ transactions: number }>(DISTURBING)
    if (rows[0]?.transactions === 0) return
    if (performance.now() > endsAt) {
      throw new Error(
        'Another program keeps a transaction open on this PostgreSQL server. Close it, or run the benchmark later.',
      )
    }
    await sleep(AGAIN_MS)
  }
}
