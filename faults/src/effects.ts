import type { Inbox, InboxAnswer, InboxEntry } from '@redrive/runtime'
import { Pool } from 'pg'

/** 8 connections for each process: fewer than the server has, enough for fifty short transactions. */
const CONNECTIONS = 8

export interface DatabaseOptions {
  /** A commit need not wait for the disk. Only where nobody breaks the database. */
  readonly isInHurry?: boolean
  readonly connections?: number
}

export function openDatabase(
  url: string,
  { isInHurry = false, connections = CONNECTIONS }: DatabaseOptions = {},
): Pool {
  const pool = new Pool({
    connectionString: url,
    max: connections,
    ...(isInHurry ? { options: '-c synchronous_commit=off' } : {}),
  })
  // An idle connection broke: whoever asks next gets another one, or hears of it.
  pool.on('error', () => undefined)
  return pool
}

/** Effects have no key on purpose: one that happens twice must be there twice. */
const TABLES = `
  create table if not exists faults_inbox (
    run text, id text, fingerprint text not null, primary key (run, id));
  create table if not exists faults_effects (run text, id text, process text);
  create index if not exists faults_effects_run on faults_effects (run, id);
  create table if not exists faults_runs (
    run text, id text, runs integer not null, primary key (run, id));`

export async function makeTables(pool: Pool): Promise<void> {
  // Two runs that begin together must not both make them.
  await pool.query(`select pg_advisory_lock(7265647269766501); ${TABLES}
    select pg_advisory_unlock(7265647269766501)`)
}

export async function forgetRun(pool: Pool, run: string): Promise<void> {
  for (const table of ['faults_inbox', 'faults_effects', 'faults_runs']) {
    await pool.query(`delete from ${table} where run = $1`, [run])
  }
}

/** How many messages have taken effect. */
export async function countEffects(pool: Pool, run: string): Promise<number> {
  const text = 'select count(distinct id)::int as count from faults_effects where run = $1'
  const { rows } = await pool.query<{ count: number }>(text, [run])
  return rows[0]?.count ?? 0
}

export async function readEffects(pool: Pool, run: string): Promise<ReadonlyMap<string, number>> {
  const text = 'select id, count(*)::int as count from faults_effects where run = $1 group by id'
  const { rows } = await pool.query<{ id: string; count: number }>(text, [run])
  return new Map(rows.map(({ id, count }) => [id, count]))
}

/** 5 s for an answer: a handler that waits for ever is not what is under test. */
const ANSWER_MS = 5_000

/** Adds an effect in a transaction of the caller's. */
export async function addEffect(
  tx: Pick<Pool, 'query'>,
  run: string,
  id: string,
  process: string,
): Promise<void> {
  const question = {
    text: 'insert into faults_effects values ($1, $2, $3)',
    values: [run, id, process],
    // `pg` takes a limit for each question, and does not say so in its types.
    query_timeout: ANSWER_MS,
  }
  await tx.query(question)
}

/** Counts a run of a message for whose dependency it matters how often it was called. */
export async function countRun(pool: Pool, run: string, id: string): Promise<number> {
  const { rows } = await pool.query<{ runs: number }>(
    `insert into faults_runs values ($1, $2, 1)
     on conflict (run, id) do update set runs = faults_runs.runs + 1 returning runs`,
    [run, id],
  )
  return rows[0]?.runs ?? 1
}

/** What a handler wants to happen; the inbox makes it happen with the key, or not at all. */
export interface Effects {
  add(process: string): void
}

export interface InboxParts {
  readonly pool: Pool
  readonly run: string
  /** The transaction is over: the handler has run to success, for the first time or again. */
  readonly onSuccess: (id: string, isNew: boolean) => void
}

/** Key and effect in one statement, which is one transaction: both are there, or neither is. */
const ONCE = `
  with first as (
    insert into faults_inbox values ($1, $2, $3) on conflict do nothing returning id)
  insert into faults_effects select $1, id, $4 from first returning id`

export function inboxOf({ pool, run, onSuccess }: InboxParts): Inbox<Effects> {
  const isSame = async ({ key, fingerprint }: InboxEntry) => {
    const text = 'select fingerprint from faults_inbox where run = $1 and id = $2'
    const { rows } = await pool.query<{ fingerprint: string }>(text, [run, key])
    return rows[0]?.fingerprint === fingerprint
  }
  return {
    async handle(entry, work): Promise<InboxAnswer> {
      let process = ''
      await work({
        add(name) {
          process = name
        },
      })
      const { rowCount } = await pool.query(ONCE, [run, entry.key, entry.fingerprint, process])
      const isNew = rowCount === 1
      onSuccess(entry.key, isNew)
      if (isNew) return 'handled'
      return (await isSame(entry)) ? 'already_handled' : 'conflict'
    },
  }
}
