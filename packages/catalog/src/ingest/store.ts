import type { Pool } from 'pg'
import { type Copy, isDuplicate, query, type RunSql } from '../database.ts'
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
import { OPEN_RETENTION_MS, type ResolvedIngest, RETENTION_MS } from './options.ts'
import { storePayloads } from './payloads.ts'
import { holdUnnamed } from './unidentified.ts'
import { splitEntries } from '../regrouping/splits.ts'
import { takeRefailed } from '../replay/outcome/refail.ts'
import { COUNT_MISMATCHES } from '../replay/outcome/statements.ts'
import {
  beginIngest,
  REGISTER_SOURCE,
  UNCHANGED_SOURCE,
  USE_LZ4,
  SEE_UNDATED,
  KNOWN_DEAD_LETTERS,
} from './statements.ts'

export async function registerSource(pool: Pool, options: ResolvedIngest): Promise<KnownSource> {
  const { retentionMs, openRetentionMs, handler } = options
  const name = storable(options.source, NAME_MAX)
  const named = [name, storableOrNull(handler, NAME_MAX)]
  const [retention, open] = [retentionMs ?? null, openRetentionMs ?? null]
  const unchanged = await query<SourceRow>(pool, UNCHANGED_SOURCE, [...named, retention, open])
  const row =
    unchanged.rows[0] ??
    (
      await query<SourceRow>(pool, REGISTER_SOURCE, [
        ...named,
        ...[retention, RETENTION_MS, open, OPEN_RETENTION_MS],
      ])
    ).rows[0]
  const id = row?.id ?? 0
  const settings = [beginIngest(id), ...(row?.has_lz4 === true ? [USE_LZ4] : [])].join('; ')
  return { id, name, settings, isStopped: row?.is_stopped ?? false }
}

interface SourceRow {
  readonly id: number
  readonly has_lz4: boolean
  readonly is_stopped: boolean
}

/** The transaction that stores one batch. */
export interface Session {
  readonly run: RunSql
  readonly copy: Copy
  readonly batch: string
}

export interface StoreResult {
  readonly added: number
  readonly failedAgain: number
}

/**
 * Adds and counts new dead letters, and returns how many. All writers use the tables in this order, and the rows
 * of each table in the order of their ids. This avoids deadlocks between ingests.
 */
export async function storeEntries(
  { run, copy, batch }: Session,
  source: KnownSource,
  entries: readonly Entry[],
  options: ResolvedIngest,
): Promise<StoreResult> {
  if (entries.length === 0) return { added: 0, failedAgain: 0 }
  const seen = await readSeenTimes(run, entries)
  const each = eachOnce(entries.map((entry) => dated(entry, seen.get(identityOf(entry)) ?? 0)))
  let all = await splitEntries(run, source.name, each, options.handler)
  let groups = await knownGroups(run, source, all)
  if (groups.isCarried) {
    // The splits of earlier groups apply to the new ones now.
    all = await splitEntries(run, source.name, all, options.handler)
    groups = await knownGroups(run, source, all)
  }
  const { overflow } = groups
  const grouped = all.map((entry) => ({
    ...entry,
    group: overflow.get(entry.group.id) ?? entry.group,
  }))
  const { fresh, again, left, mismatched } = await takeRefailed(run, copy, {
    sourceId: source.id,
    entries: grouped,
    keys: options.keys,
  })
  const added = await addDeadLetters(run, copy, source.id, fresh)
  await storePayloads(copy, added, options.keys)
  await addLookups(copy, added)
  await holdUnnamed(run, batch, options.source, added)
  await addToCounts(run, source.id, [...added, ...again], left)
  if (mismatched > 0) await run(COUNT_MISMATCHES, [source.name, mismatched])
  return { added: added.length, failedAgain: again.length }
}

/** Removes duplicates within a batch, and sorts by id. */
function eachOnce(entries: readonly DatedEntry[]): readonly DatedEntry[] {
  const each = [...new Map(entries.map((entry) => [entry.id, entry])).values()]
  return each.sort((a, b) => (a.id < b.id ? -1 : 1))
}

/** Returns the time when entries without a failure time were first seen. It is the same at every ingest. */
async function readSeenTimes(run: RunSql, entries: readonly Entry[]): Promise<Map<string, number>> {
  const undated = entries.filter(({ saidAt }) => saidAt === undefined).map(identityOf)
  if (undated.length === 0) return new Map()
  const rows = await run<{ identity: string; at: string }>(SEE_UNDATED, [undated])
  return new Map(rows.map(({ identity, at }) => [identity, Number(at)]))
}

/**
 * Adds the entries and returns the new ones. COPY cannot skip existing rows. They are rare, so the first
 * attempt copies all rows. If a row exists, the copy fails and is repeated without the existing ones.
 */
async function addDeadLetters(
  run: RunSql,
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
      const rows = await run<{ id: string }>(KNOWN_DEAD_LETTERS, [fresh.map(({ id }) => id)])
      const known = new Set(rows.map(({ id }) => id))
      // The row was deleted in between. The next ingest adds it.
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
  'runs',
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

/** Writes one row in the order of the columns above. */
function writeRow(to: CopyWriter, sourceId: number, entry: DatedEntry): void {
  const { drained, last } = entry
  const { delivery } = drained
  to.row(COLUMNS.length)
  to.integer(sourceId)
  to.uuid(entry.id)
  to.uuid(entry.group.id)
  to.timestamp(entry.firstFailedAt)
  to.timestamp(entry.lastFailedAt)
  to.integer(bounded(delivery.cycle.attempts))
  to.integer(bounded(delivery.cycle.runs))
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
