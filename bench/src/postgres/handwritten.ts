// The lower bound: handwritten code against pg, as fast as possible.
import type { Pool } from 'pg'
import type { Handler } from '../handlers.ts'
import { BODY } from './body.ts'
import type { Contender, Fate, Stage } from './contender.ts'
import { poolOf } from './database.ts'

const BATCH = 100

const PENDING = 0
const CLAIMED = 1
const DONE = 2
const FAILED = 3

const TABLE = `
  create table outbox (
    id bigint generated always as identity primary key,
    payload jsonb not null,
    status smallint not null default ${PENDING},
    attempts integer not null default 0,
    run_at timestamptz not null default now(),
    lease_until timestamptz,
    last_error text
  );
  create index on outbox (run_at, id) where status = ${PENDING}`

const FILL = 'insert into outbox (payload) select $1::jsonb from generate_series(1, $2)'

/** Does not join with the locked rows, because a generic plan for that reads the whole table. */
const CLAIM = `
  update outbox
  set status = ${CLAIMED}, attempts = attempts + 1, lease_until = now() + interval '30 seconds'
  where id = any (array (
    select id from outbox where status = ${PENDING} and run_at <= now()
    order by run_at, id limit ${BATCH} for update skip locked))
  returning id, payload`

const COMPLETE = `update outbox set status = ${DONE}, lease_until = null where id = any ($1)`

const FAIL = `
  update outbox set status = ${FAILED}, lease_until = null, last_error = failed.error
  from unnest($1::bigint[], $2::text[]) as failed (id, error) where outbox.id = failed.id`

interface Row {
  readonly id: string
  readonly payload: unknown
}

/** Claims 100, handles them and marks them together, on one connection, until none is left. */
export const bareLoop = ({ database, handler, fate }: Stage): Promise<Contender> =>
  looping(database, poolOf(database.url, { max: 1 }), (rows) => marks[fate](rows, handler))

const KEYS = 'create table handled (key text primary key)'
const ENTER = 'insert into handled (key) values ($1) on conflict do nothing returning key'

/** 7: as many transactions as an inbox of Redrive has with the default pool of 10 connections. */
const TRANSACTIONS = 7

/** Handles each message in a transaction that also stores its key, then marks 100 together. */
export async function bareInbox({ database, handler }: Stage): Promise<Contender> {
  await database.pool.query(KEYS)
  const pool = poolOf(database.url, { max: TRANSACTIONS })
  return looping(database, pool, async (rows) => {
    const waiting = [...rows]
    const work = async () => {
      const client = await pool.connect()
      for (let row = waiting.pop(); row !== undefined; row = waiting.pop()) {
        await client.query('begin')
        const { rowCount } = await client.query({ name: 'enter', text: ENTER, values: [row.id] })
        if (rowCount === 1) await handler()
        await client.query('commit')
      }
      client.release()
    }
    await Promise.all(Array.from({ length: TRANSACTIONS }, work))
    return { text: COMPLETE, values: [rows.map(({ id }) => id)] }
  })
}

async function looping(
  database: Stage['database'],
  pool: Pool,
  handle: (rows: readonly Row[]) => Promise<Statement>,
): Promise<Contender> {
  await database.pool.query(TABLE)
  let drained: Promise<void> | undefined
  const drain = async () => {
    for (;;) {
      const { rows } = await pool.query<Row>({ name: 'claim', text: CLAIM })
      if (rows.length === 0) return
      const { text, values } = await handle(rows)
      await pool.query({ name: 'mark', text, values })
    }
  }
  return {
    table: 'outbox',
    rows: {
      done: `status = ${DONE}`,
      failed: `status = ${FAILED} and last_error is not null`,
    },
    async fill(count) {
      await database.pool.query(FILL, [BODY, count])
    },
    start() {
      drained = drain()
    },
    stop: () => drained,
    close: () => pool.end(),
  }
}

interface Statement {
  readonly text: string
  readonly values: unknown[]
}

/** Runs the handlers of a batch and returns the statement that marks it. */
type Mark = (rows: readonly Row[], handler: Handler) => Promise<Statement>

const marks: Readonly<Record<Fate, Mark>> = {
  async done(rows, handler) {
    await Promise.all(rows.map(() => handler()))
    return { text: COMPLETE, values: [rows.map(({ id }) => id)] }
  },
  async failed(rows, handler) {
    const errors = await Promise.all(rows.map(() => handler().then(() => '', String)))
    return { text: FAIL, values: [rows.map(({ id }) => id), errors] }
  },
}
