import type { Inbox, InboxResult, InboxEntry } from '@redrive/runtime'
import { Pool } from 'pg'

/**
 * 8 connections for each process: fewer than the server allows, enough for fifty short
 * transactions.
 */
const CONNECTIONS = 8

export interface DatabaseOptions {
  /** Whether commits skip the wait for the disk. Only for scenarios that do not break the database. */
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
  // An idle connection broke. The next query gets another connection, or the error.
  pool.on('error', () => undefined)
  return pool
}

/** Effects have no key on purpose: an effect that happens twice must have two rows. */
const TABLES = `
  create table if not exists faults_inbox (
    run text, id text, fingerprint text not null, primary key (run, id));
  create table if not exists faults_effects (run text, id text, process text);
  create index if not exists faults_effects_run on faults_effects (run, id);
  create table if not exists faults_runs (
    run text, id text, runs integer not null, primary key (run, id));`

export async function makeTables(pool: Pool): Promise<void> {
  // Two runs that start together must not both create the tables.
  await pool.query(`select pg_advisory_lock(7265647269766501); ${TABLES}
    select pg_advisory_unlock(7265647269766501)`)
}

export async function forgetRun(pool: Pool, run: string): Promise<void> {
  for (const table of ['faults_inbox', 'faults_effects', 'faults_runs']) {
    await pool.query(`delete from ${table} where run = $1`, [run])
  }
}

/** Returns the number of messages that have taken effect. */
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

/** 5 s for a response: a handler that waits forever is not under test. */
const ANSWER_MS = 5_000

/** Adds an effect in the caller's transaction. */
export async function addEffect(
  tx: Pick<Pool, 'query'>,
  run: string,
  id: string,
  process: string,
): Promise<void> {
  const question = {
    text: 'insert into faults_effects values ($1, $2, $3)',
    values: [run, id, process],
    // `pg` accepts a limit for each query, but its types do not contain it.
    query_timeout: ANSWER_MS,
  }
  await tx.query(question)
}

/** Counts a run of a message whose dependency depends on the number of calls. */
export async function countRun(pool: Pool, run: string, id: string): Promise<number> {
  const { rows } = await pool.query<{ runs: number }>(
    `insert into faults_runs values ($1, $2, 1)
     on conflict (run, id) do update set runs = faults_runs.runs + 1 returning runs`,
    [run, id],
  )
  return rows[0]?.runs ?? 1
}

/** Effects of a handler. The inbox stores them together with the key, or not at all. */
export interface Effects {
  add(process: string): void
}

export interface InboxDeps {
  readonly pool: Pool
  readonly run: string
  /** Called after the transaction: the handler succeeded, for the first time or again. */
  readonly onSuccess: (id: string, isNew: boolean) => void
}

/** Key and effect in one statement, which is one transaction: both exist, or neither. */
const ONCE = `
  with first as (
    insert into faults_inbox values ($1, $2, $3) on conflict do nothing returning id)
  insert into faults_effects select $1, id, $4 from first returning id`

export function inboxOf({ pool, run, onSuccess }: InboxDeps): Inbox<Effects> {
  const isSame = async ({ key, fingerprint }: InboxEntry) => {
    const text = 'select fingerprint from faults_inbox where run = $1 and id = $2'
    const { rows } = await pool.query<{ fingerprint: string }>(text, [run, key])
    return rows[0]?.fingerprint === fingerprint
  }
  return {
    async handle(entry, work): Promise<InboxResult> {
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
