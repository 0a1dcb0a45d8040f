// The server of `dev/services`, and a database of its own for each candidate: tables, statistics and
// settings are then its own, and whoever else uses the server finds it as it was.
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { dropDatabase, emptyDatabase, ignoreConnectionErrors, urlOf } from '@redrive/dev-support'
import { Client, Pool, type PoolConfig } from 'pg'

/** Tests have another server: beside them, those of the transport crash the usual one. */
const SERVICE = process.env['VITEST'] === undefined ? 'postgres' : 'postgres-pair'

const PREFIX = 'redrive_bench_'
/** SQLSTATE of a database that somebody is connected to. */
const OBJECT_IN_USE = '55006'

export interface Database {
  readonly url: string
  /** Of the benchmark: fills, counts and cleans up. Candidates open their own. */
  readonly pool: Pool
  drop(): Promise<void>
}

export async function ownDatabase(): Promise<Database> {
  const url = await emptyDatabase(`${PREFIX}${randomUUID().slice(0, 8)}`, SERVICE)
  // As long as its connection is there, nobody takes the database for a leftover.
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

/** What runs that were killed have left. Nobody is connected to those, so dropping them succeeds. */
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
 * Connections stay: a candidate waits longer for its turn than `pg` keeps them, and a new one has yet to
 * read the catalog and make its plans.
 */
export const STAYING = { idleTimeoutMillis: 0 } as const

export function poolOf(url: string, options: PoolConfig = {}): Pool {
  // A query that fails rejects on its own. Graphile-worker expects the handler on each connection.
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

/** Vacuum comes between the samples, not into them. Settings are those of the partitions, if there are any. */
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
 * Before the table is filled: the checkpoint of one sample must not fall into the next, and after it
 * every page that is touched for the first time is written twice. The pages of what is filled in are new.
 */
export async function emptied(pool: Pool, table: string): Promise<void> {
  await pool.query(`truncate ${table}`)
  await pool.query('checkpoint')
}

/** A second: no statement of the benchmark takes as long, so an older transaction is somebody else's. */
const DISTURBING = `
  select count(*)::int as transactions from pg_stat_activity
  where backend_xid is not null and xact_start < now() - interval '1 second'`
const AGAIN_MS = 100
/** 5 minutes: tests that hold a transaction open on purpose are over by then. */
const DISTURBED_MS = 300_000

/**
 * A transaction that has written and stays open, in whatever database, keeps dead rows and index entries
 * from being cleaned up in all of them: every claim then reads what all claims before it left behind.
 */
export async function undisturbed(pool: Pool): Promise<void> {
  const endsAt = performance.now() + DISTURBED_MS
  for (;;) {
    const { rows } = await pool.query<{ transactions: number }>(DISTURBING)
    if (rows[0]?.transactions === 0) return
    if (performance.now() > endsAt) {
      throw new Error('Somebody keeps a transaction open on this server: run the benchmark later')
    }
    await sleep(AGAIN_MS)
  }
}
