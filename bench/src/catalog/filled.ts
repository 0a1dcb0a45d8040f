// A catalog with many dead letters. Ingesting 5 million would take too long. So the first of each
// kind are ingested, and the server creates the others from them, with every index and count.
import { type Catalog, catalog, migrate } from '@redrive/catalog'
import type { DrainedDeadLetter } from '@redrive/runtime'
import type { Pool } from 'pg'
import { type Database, ownDatabase, poolOf } from '../postgres/database.ts'
import { bodyOf, GROUPS, letterOf, listed, messageOf, signatureOf } from './letters.ts'

/** Ten days, within the retention of 14 days. */
export const DAYS = 10
const DAY_MS = 86_400_000
/** Rows of one statement; limits the amount that a checkpoint has to write. */
const STATEMENT = 100_000
/** Two concurrent statements, because the machine has two cores. */
const AT_ONCE = 2

export interface Filled {
  readonly count: number
  readonly database: Database
  readonly pool: Pool
  readonly made: Catalog
  /** Ids of the groups, largest first. */
  readonly groups: readonly string[]
  /** Start of the first day, epoch ms. */
  readonly start: number
  readonly seconds: number
  readonly megabytes: number
  close(): Promise<void>
}

export async function filled(count: number): Promise<Filled> {
  const database = await ownDatabase()
  const beganAt = performance.now()
  const pool = poolOf(database.url, { max: 4 })
  const close = async () => {
    await pool.end()
    await database.drop()
  }
  try {
    await migrate(pool)
    const made = catalog({ pool })
    const start = (Math.floor(Date.now() / DAY_MS) - DAYS) * DAY_MS
    await made.ingest(listed(examples(start)), { extract: { order: '/order/id' } })
    await addOthers(pool, count, start)
    const groups = await groupsOf(pool)
    const seconds = (performance.now() - beganAt) / 1_000
    const megabytes = await sizeOf(pool)
    return { count, database, pool, made, groups, start, seconds, megabytes, close }
  } catch (error) {
    await close()
    throw error
  }
}

/**
 * Returns one of each kind on the first day, which creates the groups, and one on each other day,
 * which creates the days.
 */
function examples(start: number): readonly DrainedDeadLetter[] {
  const ofKind = (group: number): DrainedDeadLetter => {
    const letter = letterOf(-group - 1, start + 1_000_000)
    const { cycle } = letter.delivery
    const history = cycle.history.map((one) => ({
      ...one,
      signature: signatureOf(group),
      message: messageOf(group, group),
    }))
    return {
      ...letter,
      delivery: { ...letter.delivery, bytes: bodyOf(group), cycle: { ...cycle, history } },
    }
  }
  const days = Array.from({ length: DAYS }, (_, day) =>
    letterOf(-1_000 - day, start + day * DAY_MS + 2_000_000),
  )
  return [...Array.from({ length: GROUPS }, (_, group) => ofKind(group)), ...days]
}

async function sizeOf(pool: Pool): Promise<number> {
  const { rows } = await pool.query<{ mb: number }>(
    'select pg_database_size(current_database()) / 1048576.0::float8 as mb',
  )
  return rows[0]?.mb ?? 0
}

async function groupsOf(pool: Pool): Promise<readonly string[]> {
  const { rows } = await pool.query<{ id: string }>(
    'select id from redrive_catalog.failure_group order by count desc',
  )
  return rows.map(({ id }) => id)
}

/**
 * Values that differ from the example: ids, time, key, tenant, numbers in the message and in the
 * body. A group's share is the same as for ingested dead letters: the logarithm of its position.
 */
const ADD = `
with chosen as materialized (
  select n, $1::float8 + (n - $2::integer) * $3::float8 as ms, md5(n::text) as digits,
      floor(power(${GROUPS + 1}, ('x' || left(md5('g' || n), 8))::bit(32)::bigint / 4294967296.0))::integer as place
    from generate_series($2::integer, $2::integer + $4::integer - 1) as n
), made as materialized (
  select c.*, e.id as like_id, (lpad(to_hex(c.ms::bigint), 12, '0') || '8' || substr(c.digits, 1, 3) || '8' ||
      substr(c.digits, 4, 15))::uuid as id
    from chosen c join example e using (place)
), letters as (
  insert into redrive_catalog.dead_letter (source_id, id, group_id, first_failed_at, last_failed_at, attempts, cycle,
      payload_bytes, is_quarantined, is_tombstone, class, reason, type, message_id, key, origin, content_type,
      message, headers, history)
    select d.source_id, m.id, d.group_id, to_timestamp(m.ms / 1000), to_timestamp(m.ms / 1000 + 0.03), d.attempts,
        d.cycle, d.payload_bytes, false, false, d.class, d.reason, d.type, 'm-' || m.n, 'm-' || m.n, d.origin,
        d.content_type, 'handler-' || m.place || ' could not reach host-' || m.n % 17 || ': gave up after ' || m.n % 1000 || ' ms',
        jsonb_build_object('tenant', 't-' || m.n % 500, 'traceparent', '00-' || m.digits || '-01'), d.history
      from made m join redrive_catalog.dead_letter d on d.id = m.like_id
), payloads as (
  insert into redrive_catalog.dead_letter_payload (dead_letter_id, part, bytes, wire, preview)
    select m.id, 0, convert_to(b.body::text, 'UTF8'), p.wire, b.body
      from made m join redrive_catalog.dead_letter_payload p on p.dead_letter_id = m.like_id and p.part = 0
      cross join lateral (select jsonb_build_object('order', p.preview -> 'order' || jsonb_build_object('id', 'o-' || m.n,
        'customer', 'c-' || m.n % 50000, 'tenant', 't-' || m.n % 500,
        'signature', m.digits || md5(m.digits) || md5('s' || m.n) || md5('t' || m.n))) as body) b
)
insert into redrive_catalog.dead_letter_lookup (dead_letter_id, name, value)
  select id, 'order', 'o-' || n from made`

const COUNTS = [
  `insert into redrive_catalog.group_hour as r (group_id, hour, count)
    select group_id, date_trunc('hour', last_failed_at), count(*) from redrive_catalog.dead_letter group by 1, 2
    on conflict (group_id, hour) do update set count = excluded.count`,
  `insert into redrive_catalog.group_minute as r (group_id, minute, count)
    select group_id, date_trunc('minute', last_failed_at), count(*) from redrive_catalog.dead_letter
      where last_failed_at > now() - interval '3 days' group by 1, 2
    on conflict (group_id, minute) do update set count = excluded.count`,
  `update redrive_catalog.failure_group g set count = h.count, open_count = h.count, attempts = 3 * h.count,
      last_seen_at = h.last + interval '59 minutes'
    from (select group_id, sum(count) as count, max(hour) as last from redrive_catalog.group_hour group by 1) h
    where h.group_id = g.id`,
  `update redrive_catalog.source_day d set count = c.count
    from (select first_failed_at::date as day, count(*) from redrive_catalog.dead_letter group by 1) c
    where c.day = d.day`,
]

async function addOthers(pool: Pool, count: number, start: number): Promise<void> {
  await pool.query(`create table example as
    select row_number() over (order by g.signature)::integer as place, d.id
      from redrive_catalog.failure_group g
      cross join lateral (select id from redrive_catalog.dead_letter where group_id = g.id order by id limit 1) d;
    create unique index on example (place); analyze`)
  const apart = (DAYS * DAY_MS) / count
  const starts = Array.from({ length: Math.ceil(count / STATEMENT) }, (_, at) => at * STATEMENT)
  const work = async () => {
    for (let first = starts.shift(); first !== undefined; first = starts.shift()) {
      const most = Math.min(STATEMENT, count - first)
      await inSession(pool, ADD, [start + first * apart, first, apart, most])
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, work))
  for (const text of COUNTS) await inSession(pool, text, [])
  // Autovacuum would do this during the hours in which these dead letters arrive.
  await pool.query('vacuum analyze')
}

/** Does not wait for the disk at each commit, because the data is not needed after a crash. */
async function inSession(pool: Pool, text: string, values: readonly unknown[]): Promise<void> {
  const client = await pool.connect()
  try {
    await client.query(
      `set synchronous_commit = off; set work_mem = '256MB'; set default_toast_compression = 'lz4'`,
    )
    await client.query(text, [...values])
    await client.query('reset all')
  } finally {
    client.release()
  }
}
