import { seed, type Stage } from './stage.ts'

const GROUPS = 20
/** 20 h: within the range that the list of messages shows first. */
const SPAN_MS = 72_000_000
/** Rows of one statement; limits the amount that a checkpoint has to write. */
const STATEMENT = 100_000

/** Copies of the first dead letter of each group with other ids, keys and times. */
const ADD = `
with made as materialized (
  select n, $3::float8 + n * $4::float8 as ms, md5(n::text) as digits, n % ${GROUPS} as place
    from generate_series($1::integer, $2::integer) as n
), named as materialized (
  select m.*, f.id as like_id, (lpad(to_hex(m.ms::bigint), 12, '0') || '8' || substr(m.digits, 1, 3) || '8' ||
      substr(m.digits, 4, 15))::uuid as id
    from made m join first_of_group f using (place)
), letters as (
  insert into redrive_catalog.dead_letter (source_id, id, group_id, first_failed_at, last_failed_at, attempts, cycle,
      payload_bytes, is_quarantined, is_tombstone, class, reason, type, message_id, key, origin, content_type,
      message, headers, history)
    select d.source_id, m.id, d.group_id, to_timestamp(m.ms / 1000), to_timestamp(m.ms / 1000), d.attempts, d.cycle,
        d.payload_bytes, false, false, d.class, d.reason, d.type, 'm-' || m.n, 'order-' || m.n, d.origin, d.content_type,
        d.message, d.headers, d.history
      from named m join redrive_catalog.dead_letter d on d.id = m.like_id
)
insert into redrive_catalog.dead_letter_payload (dead_letter_id, part, bytes, wire, preview)
  select m.id, 0, p.bytes, p.wire, p.preview
    from named m join redrive_catalog.dead_letter_payload p on p.dead_letter_id = m.like_id and p.part = 0`

/** The counts that ingest keeps. */
const COUNTS = [
  `insert into redrive_catalog.group_hour as r (group_id, hour, count)
    select group_id, date_trunc('hour', last_failed_at), count(*) from redrive_catalog.dead_letter group by 1, 2
    on conflict (group_id, hour) do update set count = excluded.count`,
  `insert into redrive_catalog.group_minute as r (group_id, minute, count)
    select group_id, date_trunc('minute', last_failed_at), count(*) from redrive_catalog.dead_letter group by 1, 2
    on conflict (group_id, minute) do update set count = excluded.count`,
  `update redrive_catalog.failure_group g set count = h.count, open_count = h.count, attempts = 8 * h.count
    from (select group_id, sum(count) as count from redrive_catalog.group_hour group by 1) h where h.group_id = g.id`,
  `update redrive_catalog.source_day d set count = c.count
    from (select first_failed_at::date as day, count(*) from redrive_catalog.dead_letter group by 1) c where c.day = d.day`,
]

/** Fills a catalog with this number of dead letters in 20 groups of one source. Ingest would take hours. */
export async function fillCatalog(stage: Stage, source: string, count: number): Promise<void> {
  const { catalog, pool } = stage
  const start = Date.now() - SPAN_MS
  for (let at = 0; at < GROUPS; at += 1) {
    await seed(catalog, {
      ...{ source, class: 'transient', code: 'ECONNREFUSED', message: `connect host-${at}` },
      times: [start, Date.now()],
      body: { order: at, customer: { id: `c-${at}` }, items: [{ sku: 'a', count: 2 }] },
    })
  }
  await pool.query(`create table first_of_group as
    select row_number() over (order by g.id)::integer - 1 as place, d.id
      from redrive_catalog.failure_group g
      cross join lateral (select id from redrive_catalog.dead_letter where group_id = g.id order by id limit 1) d`)
  const client = await pool.connect()
  try {
    // The data is not needed after a crash.
    await client.query('set synchronous_commit = off')
    for (let first = 0; first < count; first += STATEMENT) {
      const last = Math.min(first + STATEMENT, count) - 1
      await client.query(ADD, [first, last, start, SPAN_MS / count])
    }
    for (const text of COUNTS) await client.query(text)
    // Autovacuum would do this during the hours in which these dead letters arrive.
    await client.query('vacuum analyze')
  } finally {
    client.release()
  }
}
