import type { Pool } from 'pg'
import { type Copy, isDuplicate, query, type Run } from '../database.ts'
import { MESSAGE_MAX, NAME_MAX, storable, storableOrNull } from '../text.ts'
import { type CopyWriter, copyRows } from './copy.ts'
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
import { holdUnnamed } from './unnamed.ts'
import { takeRefailed } from '../replay/refail.ts'

/** What is not said stays as it is. */
const REGISTER = `
insert into redrive_catalog.source as s (name, handler, retention)
  values ($1, $2, coalesce($3::float8, $4::float8) * interval '1 millisecond')
  on conflict (name) do update set handler = coalesce($2, s.handler),
    retention = coalesce($3::float8 * interval '1 millisecond', s.retention)
  returning id, coalesce((select 'lz4' = any(enumvals) from pg_settings
    where name = 'default_toast_compression'), false) as has_lz4`

/** Payloads are stored in a third less time than with PostgreSQL's own, at the same size. Not every server has it. */
const LZ4 = `set local default_toast_compression = 'lz4'`

export async function registerSource(pool: Pool, options: ResolvedIngest): Promise<KnownSource> {
  const { retentionMs, handler } = options
  const name = storable(options.source, NAME_MAX)
  const values = [name, storableOrNull(handler, NAME_MAX), retentionMs ?? null, RETENTION_MS]
  const { rows } = await query<{ id: number; has_lz4: boolean }>(pool, REGISTER, values)
  const [row] = rows
  return { id: row?.id ?? 0, name, settings: row?.has_lz4 === true ? LZ4 : '' }
}

/** One transaction for the batch of that name. */
export interface Session {
  readonly run: Run
  readonly copy: Copy
  readonly batch: string
}

export interface Stored {
  readonly added: number
  readonly refailed: number
}

/**
 * Adds what is not there yet, and counts that alone; answers how many. Everybody goes through the tables
 * in this order and through the rows of each by their id, so that two ingests never wait for each other.
 */
export async function storeEntries(
  { run, copy, batch }: Session,
  source: KnownSource,
  entries: readonly Entry[],
  options: ResolvedIngest,
): Promise<Stored> {
  if (entries.length === 0) return { added: 0, refailed: 0 }
  const seen = await seenMoments(run, entries)
  const all = eachOnce(entries.map((entry) => dated(entry, seen.get(identityOf(entry)) ?? 0)))
  const groups = await knownGroups(run, source, all)
  const grouped = all.map((entry) => ({
    ...entry,
    group: groups.get(entry.group.id) ?? entry.group,
  }))
  const { fresh, again, left } = await takeRefailed(run, copy, {
    sourceId: source.id,
    entries: grouped,
    keys: options.keys,
  })
  const added = await addDeadLetters(run, copy, source.id, fresh)
  await storePayloads(copy, added, options.keys)
  await addLookups(copy, added)
  await holdUnnamed(run, batch, options.source, added)
  await addToCounts(run, source.id, [...added, ...again], left)
  return { added: added.length, refailed: again.length }
}

/** A source may hand one out twice; it is still one. In the order of ids. */
function eachOnce(entries: readonly DatedEntry[]): readonly DatedEntry[] {
  const each = [...new Map(entries.map((entry) => [entry.id, entry])).values()]
  return each.sort((a, b) => (a.id < b.id ? -1 : 1))
}

/** What is there already is written as it is: until the end of the transaction upkeep cannot forget it. */
const SEE = `
insert into redrive_catalog.undated as u (identity)
  select distinct identity from unnest($1::uuid[]) as identity order by identity
  on conflict (identity) do update set seen_at = u.seen_at
  returning identity, (extract(epoch from seen_at) * 1000)::bigint as at`

/** When those that do not say so were first seen; the same whenever they come again. */
async function seenMoments(run: Run, entries: readonly Entry[]): Promise<Map<string, number>> {
  const undated = entries.filter(({ saidAt }) => saidAt === undefined).map(identityOf)
  if (undated.length === 0) return new Map()
  const rows = await run<{ identity: string; at: string }>(SEE, [undated])
  return new Map(rows.map(({ identity, at }) => [identity, Number(at)]))
}

/** Those that are there already. */
const KNOWN = 'select id from redrive_catalog.dead_letter where id = any($1::uuid[])'

/**
 * Answers those that were added. A copy cannot pass over what is there already. That is rare, so it
 * is found out by trying: one that is known ends the copy, and the rest is copied again.
 */
async function addDeadLetters(
  run: Run,
  copy: Copy,
  sourceId: number,
  entries: readonly DatedEntry[],
): Promise<readonly DatedEntry[]> {
  let fresh = entries
  for (;;) {
    await run('savepoint fresh')
    try {
      await copyRows(copy, DEAD_LETTERS, fresh, (writer, one) => writeRow(writer, sourceId, one))
      return fresh
    } catch (error) {
      if (!isDuplicate(error)) throw error
      await run('rollback to savepoint fresh')
      const rows = await run<{ id: string }>(KNOWN, [fresh.map(({ id }) => id)])
      const known = new Set(rows.map(({ id }) => id))
      // Gone again in the meantime: whoever ingests it next will see.
      if (known.size === 0) throw error
      fresh = fresh.filter(({ id }) => !known.has(id))
    }
  }
}

const COLUMNS = [
  'source_id',
  'id',
  'group_id',
  'first_failed_at',
  'last_failed_at',
  'attempts',
  'cycle',
  'payload_bytes',
  'is_quarantined',
  'is_tombstone',
  'class',
  'reason',
  'code',
  'type',
  'message_id',
  'key',
  'lane',
  'origin',
  'content_type',
  'message',
  'headers',
  'history',
]
const DEAD_LETTERS = `dead_letter (${COLUMNS.join(', ')})`

/** In the order of the columns above. */
function writeRow(to: CopyWriter, sourceId: number, entry: DatedEntry): void {
  const { drained, last } = entry
  const { delivery } = drained
  to.row(COLUMNS.length)
  to.integer(sourceId)
  to.uuid(entry.id)
  to.uuid(entry.group.id)
  to.moment(entry.firstFailedAt)
  to.moment(entry.lastFailedAt)
  to.integer(bounded(delivery.cycle.attempts))
  to.integer(bounded(delivery.cycle.number))
  to.integer(delivery.bytes.length)
  to.boolean(drained.quarantined)
  to.boolean(delivery.isTombstone ?? false)
  to.text(last.class)
  to.text(storable(drained.reason, NAME_MAX))
  to.text(storableOrNull(last.code, NAME_MAX))
  to.text(storableOrNull(delivery.type, NAME_MAX))
  to.text(storable(delivery.id, NAME_MAX))
  to.text(storable(delivery.key, NAME_MAX))
  to.text(storableOrNull(delivery.lane, NAME_MAX))
  to.text(storable(drained.origin, NAME_MAX))
  to.text(storableOrNull(delivery.contentType, NAME_MAX))
  to.text(storable(last.message, MESSAGE_MAX))
  to.json(entry.headers)
  to.json(entry.history)
}

async function addLookups(copy: Copy, added: readonly DatedEntry[]): Promise<void> {
  const found = added.flatMap(({ id, extracted }) =>
    extracted.map(([name, value]) => ({ id, name, value })),
  )
  await copyRows(copy, 'dead_letter_lookup (dead_letter_id, name, value)', found, (to, one) => {
    to.row(3)
    to.uuid(one.id)
    to.text(one.name)
    to.text(one.value)
  })
}
