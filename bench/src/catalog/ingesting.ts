// Measures how fast dead letters are stored in the catalog. It compares with a copy of the same
// rows without an index, and with an ingest without counts.
import { type Catalog, catalog, migrate } from '@redrive/catalog'
import type { DrainedDeadLetter } from '@redrive/runtime'
import { Client, type Pool } from 'pg'
import type { Candidate } from '../harness.ts'
import { type Database, emptied, ownDatabase, poolOf, undisturbed } from '../postgres/database.ts'
import { bareOf, type Copied, copyBare, recording } from './copying.ts'
import { letterOf, listed } from './letters.ts'

const TABLES = [
  'dead_letter',
  'dead_letter_payload',
  'dead_letter_lookup',
  'failure_group',
  'group_minute',
  'group_hour',
  'source_day',
].map((table) => `redrive_catalog.${table}`)

/** Batch size for bulk ingest: fewer commits. */
const BULK = 1_000
/** Batch size for live ingest: the dead letters that arrive between two polls. */
const LIVE = 100
const EXTRACT = { order: '/order/id' }

/** Two days ago, so that no sample is in the future. */
const START = Date.now() - 172_800_000

const lettersOf = (count: number): readonly DrainedDeadLetter[] =>
  Array.from({ length: count }, (_, number) => letterOf(number, START))

async function countOf(pool: Pool, table: string): Promise<number> {
  const { rows } = await pool.query<{ count: string }>(`select count(*) from ${table}`)
  return Number(rows[0]?.count)
}

async function expectCount(pool: Pool, table: string, count: number): Promise<void> {
  const found = await countOf(pool, table)
  if (found !== count) throw new Error(`${found} rows in ${table} instead of ${count}`)
}

interface Ingesting {
  readonly name: string
  readonly batch: number
  readonly poolOn?: (url: string) => Pool
  /** Whether the counts of all groups are kept and verified. */
  readonly isCounted?: boolean
}

/** Ingests into a separate database that is emptied before each sample. */
async function ingesting({
  name,
  batch,
  poolOn = poolOf,
  isCounted = true,
}: Ingesting): Promise<Candidate> {
  const database = await ownDatabase()
  const { pool } = database
  await migrate(pool)
  const own = poolOn(database.url)
  const made = catalog({ pool: own })
  let letters: readonly DrainedDeadLetter[] = []
  return {
    name,
    async prepare(count) {
      letters = lettersOf(count)
      await fresh(database)
      await pool.query('vacuum redrive_catalog.failure_group, redrive_catalog.source')
      globalThis.gc?.()
    },
    run: (count) => ingested(made, letters, batch, count),
    async verify(count) {
      await expectCount(pool, 'redrive_catalog.dead_letter', count)
      await expectCount(pool, 'redrive_catalog.dead_letter_payload', count)
      const { rows } = await pool.query<{ count: string }>(
        'select coalesce(sum(count), 0) as count from redrive_catalog.group_hour',
      )
      const counted = Number(rows[0]?.count)
      if (counted !== (isCounted ? count : 0))
        throw new Error(`The counts contain ${counted} of ${count} dead letters.`)
    },
    async close() {
      await own.end()
      await database.drop()
    },
  }
}

async function fresh({ pool }: Database): Promise<void> {
  await undisturbed(pool)
  await emptied(pool, TABLES.join(', '))
}

async function ingested(
  made: Catalog,
  letters: readonly DrainedDeadLetter[],
  batch: number,
  count: number,
): Promise<void> {
  const { added } = await made.ingest(listed(letters), { batch, extract: EXTRACT })
  if (added !== count)
    throw new Error(`The ingest added ${added} dead letters instead of ${count}.`)
}

export const bulk = (name: string): Promise<Candidate> => ingesting({ name, batch: BULK })
export const live = (name: string): Promise<Candidate> => ingesting({ name, batch: LIVE })

/** The statement that updates all counts. */
const COUNTING = 'redrive_catalog.add_to_counts('

/** The same ingest without this statement: it is answered immediately and never sent. */
export const liveUncounted = (name: string): Promise<Candidate> =>
  ingesting({ name, batch: LIVE, poolOn: withoutCounts, isCounted: false })

function withoutCounts(url: string): Pool {
  const pool = poolOf(url)
  pool.on('connect', (client) => {
    const query = client.query.bind(client) as (...args: readonly unknown[]) => unknown
    const passing = (...args: readonly unknown[]) => {
      const { text = '' } = args[0] as { readonly text?: string }
      return text.includes(COUNTING) ? Promise.resolve({ rows: [] }) : query(...args)
    }
    Object.assign(client, { query: passing })
  })
  return pool
}

// ---- The lower bound
// -------------------------------------------------------------------------------

/** Copies prepared rows on one connection, one table after the other, with one statement each. */
export async function bareCopy(name: string): Promise<Candidate> {
  const database = await ownDatabase()
  const { pool } = database
  await migrate(pool)
  const client = new Client({ connectionString: database.url })
  await client.connect()
  const bare = ['dead_letter', 'dead_letter_payload', 'dead_letter_lookup']
  for (const table of bare) {
    await pool.query(
      `create table ${bareOf(table)} (like redrive_catalog.${table} including defaults including storage)`,
    )
  }
  // As the ingest does, where the server supports it.
  await client
    .query(`set default_toast_compression = 'lz4'`)
    .catch((error: unknown) =>
      process.stderr.write(`Cannot use lz4 compression: ${String(error)}\n`),
    )
  let copied: { readonly count: number; readonly rows: Copied } | undefined
  return {
    name,
    async prepare(count) {
      if (copied?.count !== count) copied = { count, rows: await recorded(database, count) }
      await undisturbed(pool)
      await emptied(pool, bare.map(bareOf).join(', '))
      globalThis.gc?.()
    },
    run: () => copyBare(client, copied?.rows ?? new Map()),
    verify: (count) => expectCount(pool, bareOf('dead_letter_payload'), count),
    async close() {
      await client.end()
      await database.drop()
    },
  }
}

async function recorded(database: Database, count: number): Promise<Copied> {
  await fresh(database)
  const rows: Copied = new Map()
  const own = recording(database.url, rows)
  await ingested(catalog({ pool: own }), lettersOf(count), BULK, count)
  await own.end()
  await fresh(database)
  return rows
}
