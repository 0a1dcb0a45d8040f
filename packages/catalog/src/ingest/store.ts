import type { Pool } from 'pg'
import { explained, type Run } from '../database.ts'
import { MESSAGE_MAX, NAME_MAX, storable, storableOrNull } from '../text.ts'
import { addToCounts } from './counts.ts'
import {
  bounded,
  type DatedEntry,
  dated,
  type Entry,
  identityOf,
  type KnownSource,
} from './entry.ts'
import { knownGroups } from './groups.ts'
import { type ResolvedIngest, RETENTION_MS } from './options.ts'
import { storePayloads } from './payloads.ts'

/** What is not said stays as it is. */
const REGISTER = `
insert into redrive_catalog.source as s (name, handler, retention)
  values ($1, $2, coalesce($3::float8, $4::float8) * interval '1 millisecond')
  on conflict (name) do update set handler = coalesce($2, s.handler),
    retention = coalesce($3::float8 * interval '1 millisecond', s.retention)
  returning id`

export async function registerSource(pool: Pool, options: ResolvedIngest): Promise<KnownSource> {
  const { retentionMs, handler } = options
  const name = storable(options.source, NAME_MAX)
  const values = [name, storableOrNull(handler, NAME_MAX), retentionMs ?? null, RETENTION_MS]
  try {
    const { rows } = await pool.query<{ id: number }>(REGISTER, values)
    return { id: rows[0]?.id ?? 0, name }
  } catch (error) {
    throw explained(error)
  }
}

/**
 * Adds what is not there yet, and counts that alone; answers how many. Everybody goes through the tables
 * in this order and through the rows of each by their id, so that two ingests never wait for each other.
 */
export async function storeEntries(
  run: Run,
  source: KnownSource,
  entries: readonly Entry[],
  options: ResolvedIngest,
): Promise<number> {
  if (entries.length === 0) return 0
  const seen = await seenMoments(run, entries)
  const all = eachOnce(entries.map((entry) => dated(entry, seen.get(identityOf(entry)) ?? 0)))
  const groups = await knownGroups(run, source, all)
  const grouped = all.map((entry) => ({
    ...entry,
    group: groups.get(entry.group.id) ?? entry.group,
  }))
  const ids = new Set(await insertDeadLetters(run, source.id, grouped))
  const added = grouped.filter(({ id }) => ids.has(id))
  await storePayloads(run, added, options.keys)
  await insertLookups(run, added)
  await addToCounts(run, source.id, added)
  return added.length
}

/** A source may hand one out twice; it is still one. */
function eachOnce(entries: readonly DatedEntry[]): readonly DatedEntry[] {
  return [...new Map(entries.map((entry) => [entry.id, entry])).values()]
}

const SEE = `
insert into redrive_catalog.undated (identity)
  select identity from unnest($1::uuid[]) as identity order by identity
  on conflict (identity) do nothing`
const SEEN = `
select identity, (extract(epoch from seen_at) * 1000)::bigint as at
  from redrive_catalog.undated where identity = any($1::uuid[])`

/** When those that do not say so were first seen; the same whenever they come again. */
async function seenMoments(run: Run, entries: readonly Entry[]): Promise<Map<string, number>> {
  const undated = entries.filter(({ saidAt }) => saidAt === undefined).map(identityOf)
  if (undated.length === 0) return new Map()
  await run(SEE, [undated])
  const rows = await run<{ identity: string; at: string }>(SEEN, [undated])
  return new Map(rows.map(({ identity, at }) => [identity, Number(at)]))
}

const INSERT = `
insert into redrive_catalog.dead_letter (source_id, id, group_id, first_failed_at, last_failed_at, attempts,
    cycle, payload_bytes, is_quarantined, is_tombstone, class, reason, code, type, message_id, key, lane,
    origin, content_type, message, headers, history)
  select $1, d.id, d.group_id, to_timestamp(d.first_ms / 1000.0), to_timestamp(d.last_ms / 1000.0), d.attempts,
      d.cycle, d.payload_bytes, d.is_quarantined, d.is_tombstone, d.class, d.reason, d.code, d.type, d.message_id,
      d.key, d.lane, d.origin, d.content_type, d.message, d.headers::jsonb, d.history::jsonb
    from unnest($2::uuid[], $3::uuid[], $4::bigint[], $5::bigint[], $6::integer[], $7::integer[], $8::integer[],
      $9::boolean[], $10::boolean[], $11::text[], $12::text[], $13::text[], $14::text[], $15::text[], $16::text[],
      $17::text[], $18::text[], $19::text[], $20::text[], $21::text[], $22::text[])
      as d (id, group_id, first_ms, last_ms, attempts, cycle, payload_bytes, is_quarantined, is_tombstone, class,
        reason, code, type, message_id, key, lane, origin, content_type, message, headers, history)
    order by d.id
  on conflict (id) do nothing
  returning id`

async function insertDeadLetters(
  run: Run,
  sourceId: number,
  entries: readonly DatedEntry[],
): Promise<readonly string[]> {
  const rows = entries.map(rowOf)
  const columns = rows[0]?.map((_, column) => rows.map((row) => row[column])) ?? []
  const added = await run<{ id: string }>(INSERT, [sourceId, ...columns])
  return added.map(({ id }) => id)
}

/** As the parameters of the statement above. */
function rowOf(entry: DatedEntry): readonly unknown[] {
  const { drained, last } = entry
  const { delivery } = drained
  const { cycle } = delivery
  return [
    entry.id,
    entry.group.id,
    entry.firstFailedAt,
    entry.lastFailedAt,
    bounded(cycle.attempts),
    bounded(cycle.number),
    delivery.bytes.length,
    drained.quarantined,
    delivery.isTombstone ?? false,
    last.class,
    storable(drained.reason, NAME_MAX),
    storableOrNull(last.code, NAME_MAX),
    storableOrNull(delivery.type, NAME_MAX),
    storable(delivery.id, NAME_MAX),
    storable(delivery.key, NAME_MAX),
    storableOrNull(delivery.lane, NAME_MAX),
    storable(drained.origin, NAME_MAX),
    storableOrNull(delivery.contentType, NAME_MAX),
    storable(last.message, MESSAGE_MAX),
    entry.headers,
    entry.history,
  ]
}

const LOOKUPS = `
insert into redrive_catalog.dead_letter_lookup (dead_letter_id, name, value)
  select * from unnest($1::uuid[], $2::text[], $3::text[])`

async function insertLookups(run: Run, added: readonly DatedEntry[]): Promise<void> {
  const found = added.flatMap(({ id, extracted }) =>
    extracted.map(([name, value]) => ({ id, name, value })),
  )
  if (found.length === 0) return
  await run(LOOKUPS, [
    found.map(({ id }) => id),
    found.map(({ name }) => name),
    found.map(({ value }) => value),
  ])
}
