import type { Copy, RunSql } from '../../database.ts'
import { type DatedEntry, bounded } from '../../ingest/entry.ts'
import { storePayloads } from '../../ingest/payloads.ts'
import type { Status } from '../../read/query.ts'
import type { PayloadKeys } from '../../encryption.ts'
import { MESSAGE_MAX, NAME_MAX, storable, storableOrNull } from '../../text.ts'
import { LOCK_GROUPS } from '../../statements.ts'
import { countMoves } from '../../status.ts'
import { replayIdIn } from '../signed-id.ts'
import { isSignedBy, type SignedItem } from './signed-item.ts'
import {
  REFAILED_ITEMS,
  RETURNED_ITEMS,
  LOCK_REFAILED,
  KEEP_CYCLE,
  KEEP_BODIES,
  DELETE_BODIES,
  REOPEN_REFAILED,
  SET_FAILED_AGAIN,
} from './statements.ts'

/** The entries of a batch, split by whether they are replays that failed again. */
export interface Refailed {
  /** Entries that are not a replay of this source. */
  readonly fresh: readonly DatedEntry[]
  /** Known dead letters that are open again, with their existing id and first failure time. */
  readonly again: readonly DatedEntry[]
  /** The previous group of each dead letter that counted as open there. */
  readonly left: readonly string[]
  /** Number of fresh entries with the replay id of a replay that they do not belong to. */
  readonly mismatched: number
}

interface ItemRow extends SignedItem {
  readonly cycle: number
  readonly state: string
  readonly is_edited: boolean
  /** Set if the item was found by message id and body, and not by its replay id. */
  readonly message_id?: string
}

interface LetterRow {
  readonly id: string
  readonly group_id: string
  readonly status: Status
  readonly first_ms: number
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
): Promise<Refailed> {
  const ids = entries.flatMap((entry) => replayIdIn(entry.drained.delivery.replayId) ?? [])
  const unnamed = entries.filter(isUnnamed)
  if (ids.length + unnamed.length === 0)
    return { fresh: entries, again: [], left: [], mismatched: 0 }
  const items = await itemsOf(run, sourceId, ids, unnamed)
  const own = items.filter((item) => item.source_id === sourceId)
  const letters = await run<LetterRow>(LOCK_REFAILED, [own.map((item) => item.dead_letter_id)])
  // Reads the items again, now that the locks prevent changes.
  const locked = items.length === 0 ? [] : await itemsOf(run, sourceId, ids, unnamed)
  const { fresh, comebacks, mismatched } = sorted(sourceId, entries, locked, letters)
  await keepCycle(run, comebacks)
  await keepBodies(run, comebacks)
  await reopenAll(run, comebacks)
  const again = comebacks.map(({ entry }) => entry)
  await storePayloads(copy, again, keys)
  await run(SET_FAILED_AGAIN, [comebacks.map(({ item }) => item.replay_id)])
  await leaveGroups(run, entries, comebacks)
  const open = comebacks.filter(({ letter }) => letter.status === 'open')
  return { fresh, again, left: open.map(({ letter }) => letter.group_id), mismatched }
}

/** Whether a message has an id of its producer, but no replay id: its consumer may have removed the headers. */
const isUnnamed = ({ drained }: DatedEntry) =>
  drained.delivery.replayId === undefined && drained.identity === 'stable'

/** Reads the items of these replays, and the items whose message came back without its replay id. */
async function itemsOf(
  run: RunSql,
  sourceId: number,
  ids: readonly string[],
  unnamed: readonly DatedEntry[],
): Promise<readonly ItemRow[]> {
  const named = ids.length === 0 ? [] : await run<ItemRow>(REFAILED_ITEMS, [ids])
  if (unnamed.length === 0) return named
  const returned = await run<ItemRow>(RETURNED_ITEMS, [
    unnamed.map(messageIdOf),
    unnamed.map(contentOf),
    unnamed.map(({ lastFailedAt }) => lastFailedAt),
    sourceId,
  ])
  return [...named, ...returned]
}

const messageIdOf = ({ drained }: DatedEntry) => storable(drained.delivery.id, NAME_MAX)
const contentOf = ({ sha256 }: DatedEntry) => sha256.toString('hex')

interface Comeback {
  readonly entry: DatedEntry
  readonly item: ItemRow
  readonly letter: LetterRow
}

const ENDED: ReadonlySet<string> = new Set(['resolved', 'failed_again'])

interface Sorted {
  readonly fresh: readonly DatedEntry[]
  readonly comebacks: readonly Comeback[]
  readonly mismatched: number
}

function sorted(
  sourceId: number,
  entries: readonly DatedEntry[],
  items: readonly ItemRow[],
  letters: readonly LetterRow[],
): Sorted {
  const byReplay = new Map(items.map((item) => [item.replay_id, item]))
  const byContent = new Map(
    items.flatMap((item) =>
      item.message_id === undefined ? [] : [[`${item.content} ${item.message_id}`, item] as const],
    ),
  )
  const itemOf = (entry: DatedEntry) =>
    isUnnamed(entry)
      ? byContent.get(`${contentOf(entry)} ${messageIdOf(entry)}`)
      : byReplay.get(replayIdIn(entry.drained.delivery.replayId) ?? '')
  const byId = new Map(letters.map((letter) => [letter.id, letter]))
  const fresh: DatedEntry[] = []
  const comebacks = new Map<string, Comeback>()
  let mismatched = 0
  for (const entry of entries) {
    const item = itemOf(entry)
    const letter = byId.get(item?.dead_letter_id ?? '')
    if (item === undefined) fresh.push(entry)
    else if (!isPublished(item, sourceId, entry)) {
      fresh.push(entry)
      mismatched += 1
    } else if (letter === undefined) fresh.push(entry)
    else if (!ENDED.has(item.state)) {
      const same = { ...entry, id: letter.id, firstFailedAt: letter.first_ms }
      comebacks.set(letter.id, { entry: same, item, letter })
    }
  }
  return { fresh, comebacks: [...comebacks.values()], mismatched }
}

/**
 * Whether the message is the one that was published: its body, and the signature of its replay id, which is bound to
 * the source. Any other message must not replace the original and does not show that the replay failed. It must not
 * be dropped either, so it becomes a separate dead letter. The replay waits for its outcome and ends as unknown. A
 * message without a replay id was found by its own id and body, only among the items of its source.
 */
const isPublished = (item: ItemRow, sourceId: number, entry: DatedEntry) =>
  item.source_id === sourceId &&
  item.content === contentOf(entry) &&
  (isUnnamed(entry) || isSignedBy(item, entry.drained.delivery.replayId ?? ''))

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
function rowOf({ entry, item }: Comeback): readonly unknown[] {
  const { drained, last } = entry
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
    storable(delivery.key, NAME_MAX),
    storable(last.message, MESSAGE_MAX),
    entry.headers,
    entry.history,
    bounded(delivery.cycle.runs),
  ]
}
