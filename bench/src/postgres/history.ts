// Compares Redrive with itself, with and without a week of delivered rows in the table.
import type { Pool } from 'pg'
import type { Contender, Entrants, Stage } from './contender.ts'
import { FIXED, QUEUE, redrive } from './redrive.ts'

const DAYS = 7
/** Rows of one statement; limits its memory. */
const STATEMENT = 500_000

const MAKE_PARTITIONS = `
  select redrive.outbox_make_partition((now() at time zone 'UTC')::date - day)
  from generate_series(1, ${DAYS}) as day`

/**
 * Delivered rows of the same queue, spread over the days. They are small, because they are never
 * read.
 */
const ADD_DELIVERED = `
  insert into redrive.outbox (id, queue, status, due_at, created_at, delivered_at, lease_token, payload)
  select redrive.uuid_v7(added_at), '${QUEUE}', 'delivered', null, added_at, added_at, 1, '{}'
  from (
    select now() - interval '1 hour' - random() * interval '${DAYS} days' as added_at
    from generate_series(1, $1)
  ) as times`

/** Deletes only the messages of a sample, because the table is too large to fill it each time. */
async function prepare(contender: Contender, pool: Pool, count: number): Promise<void> {
  const { table, rows } = contender
  await pool.query(`delete from ${table} where ${rows.own}`)
  await pool.query('checkpoint')
  await contender.fill(count)
  const partitions = await pool.query<{ name: string }>(
    `select distinct tableoid::regclass::text as name from ${table} where ${rows.own}`,
  )
  for (const { name } of partitions.rows) await pool.query(`vacuum analyze ${name}`)
}

// Maintenance is off, because it would drop the old partitions.
const open = redrive({ policy: FIXED, transport: { maintain: false } })

const after =
  (delivered: number) =>
  async (stage: Stage): Promise<Contender> => {
    const { pool } = stage.database
    const contender = await open(stage)
    await pool.query(MAKE_PARTITIONS)
    for (let left = delivered; left > 0; left -= STATEMENT) {
      await pool.query(ADD_DELIVERED, [Math.min(left, STATEMENT)])
    }
    await pool.query(`vacuum analyze ${contender.table}`)
    return contender
  }

export const EMPTY = 'redrive, empty table'
export const FULL = 'redrive, delivered rows'

/** Both have the same partitions; only their content differs. */
export const histories = (delivered: number): Entrants => [
  { name: EMPTY, open: after(0), prepare },
  { name: FULL, open: after(delivered), prepare },
]
