import type { Copy, RunSql } from '../../database.ts'
import { type DatedEntry, bounded } from '../../ingest/entry.ts'
import { storePayloads } from '../../ingest/payloads.ts'
import type { PayloadKeys } from '../../encryption.ts'
import { MESSAGE_MAX, NAME_MAX, storable, storableOrNull } from '../../text.ts'
import { LOCK_GROUPS } from '../../statements.ts'
import { countMoves } from '../../status.ts'
import { findReturned, type ItemRow, type LetterRow } from './returned.ts'
import {
  KEEP_CYCLE,
  KEEP_BODIES,
  DELETE_BODIES,
  LOCK_ITEMS,
  REOPEN_REFAILED,
  SET_FAILED_AGAIN,
  UNLINK_SET_ASIDE,
} from './statements.ts'

/** The entries of a batch, split by whether they are replays that failed again. */
export interface RefailSplit {
  /** Entries that are not a replay of this source. */
  readonly fresh: readonly DatedEntry[]
  /** Known dead letters that are open again, with their existing id and first failure time. */
  readonly again: readonly DatedEntry[]
  /** The previous group of each dead letter that counted as open there. */
  readonly left: readonly string[]
  /** Number of fresh entries with the replay id of a replay that they do not belong to. */
  readonly mismatched: number
}

export interface RefailedBatch {
  readonly sourceId: number
  readonly entries: readonly DatedEntry[]
  readonly keys: PayloadKeys | undefined
}

/**
 * Reopens the dead letters of replays that failed again, in their next cycle. A second copy of the same replay
 * is ignored, because the outcome of this replay is already stored.
 */
export async function takeRefailed(
  run: RunSql,
  copy: Copy,
  { sourceId, entries, keys }: RefailedBatch,
): Promise<RefailSplit> {
  const { fresh, returned, mismatched } = await findReturned(run, sourceId, entries)
  if (returned.length === 0) return { fresh, again: [], left: [], mismatched }
  const comebacks = returned.map(({ message, item, letter }) => {
    const entry = { ...message, id: letter.id, firstFailedAt: letter.first_ms }
    return { entry, item, letter }
  })
  const replaced = comebacks.filter((one) => !keepsOriginal(one))
  await keepCycle(run, comebacks)
  await keepBodies(run, replaced)
  await reopenAll(run, comebacks)
  await storePayloads(
    copy,
    replaced.map(({ entry }) => entry),
    keys,
  )
  const again = comebacks.map(({ entry }) => entry)
  const replayIds = comebacks.map(({ item }) => item.replay_id)
  await run(LOCK_ITEMS, [replayIds])
  await run(SET_FAILED_AGAIN, [replayIds, 'dead letter'])
  await leaveGroups(run, entries, comebacks)
  const open = comebacks.filter(({ letter }) => letter.status === 'open')
  return { fresh, again, left: open.map(({ letter }) => letter.group_id), mismatched }
}

interface Comeback {
  readonly entry: DatedEntry
  readonly item: ItemRow
  readonly letter: LetterRow
}

/**
 * Whether the stored headers and key stay. A message without a replay id has no signature, so any client that knows
 * its id and body can write it. Its body is the stored one, unless the run changed it.
 */
const keepsOriginal = ({ item }: Comeback) => item.message_id !== undefined && !item.is_changed

/**
 * Subtracts the dead letters that were being replayed or undecided from their groups. It locks the groups of the
 * whole batch first: the ingest locks them later, and the order of ids must be kept.
 */
async function leaveGroups(
  run: RunSql,
  entries: readonly DatedEntry[],
  comebacks: readonly Comeback[],
): Promise<void> {
  const moves = comebacks
    .filter(({ letter }) => letter.status !== 'open')
    .map(({ letter }) => ({ group: letter.group_id, was: letter.status }))
  if (moves.length === 0) return
  const groups = [...entries.map(({ group }) => group.id), ...moves.map(({ group }) => group)]
  await run(LOCK_GROUPS, [groups])
  await countMoves(run, moves)
}

async function keepCycle(run: RunSql, comebacks: readonly Comeback[]): Promise<void> {
  await run(KEEP_CYCLE, [
    comebacks.map(({ letter }) => letter.id),
    comebacks.map(({ item }) => item.replay_id),
  ])
}

/**
 * Removes the stored payload before the new one is stored, with its new headers and the published body. The
 * original body is not lost: it equals the published body or, if the run edited it, is copied to `payload_before`.
 */
async function keepBodies(run: RunSql, comebacks: readonly Comeback[]): Promise<void> {
  const edited = comebacks.filter(({ item }) => item.is_edited)
  await run(KEEP_BODIES, [edited.map(({ letter }) => letter.id)])
  await run(DELETE_BODIES, [comebacks.map(({ letter }) => letter.id)])
  const changed = comebacks.filter(({ item }) => item.is_changed)
  await run(UNLINK_SET_ASIDE, [changed.map(({ letter }) => letter.id)])
}

async function reopenAll(run: RunSql, comebacks: readonly Comeback[]): Promise<void> {
  const rows = comebacks.map(rowOf)
  const columns = Array.from({ length: OPEN_COLUMNS }, (_, column) =>
    rows.map((row) => row[column]),
  )
  await run(REOPEN_REFAILED, columns)
}

const OPEN_COLUMNS = 16

/** Returns the parameters of the statement above for one dead letter. */
function rowOf(comeback: Comeback): readonly unknown[] {
  const { entry, item } = comeback
  const { drained, last } = entry
  const isKept = keepsOriginal(comeback)
  const { delivery } = drained
  return [
    entry.id,
    item.cycle + 1,
    entry.group.id,
    bounded(delivery.cycle.attempts),
    entry.lastFailedAt,
    delivery.bytes.length,
    drained.quarantined,
    delivery.isTombstone ?? false,
    last.class,
    storable(drained.reason, NAME_MAX),
    storableOrNull(last.code, NAME_MAX),
    isKept ? null : storable(delivery.key, NAME_MAX),
    storable(last.message, MESSAGE_MAX),
    isKept ? null : entry.headers,
    entry.history,
    bounded(delivery.cycle.runs),
  ]
}
