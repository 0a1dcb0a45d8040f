import type { Copy, Run } from '../database.ts'
import { type DatedEntry, bounded } from '../ingest/entry.ts'
import { storePayloads } from '../ingest/payloads.ts'
import { isId } from '../read/check.ts'
import type { Status } from '../read/query.ts'
import type { PayloadKeys } from '../seal.ts'
import { MESSAGE_MAX, NAME_MAX, storable, storableOrNull } from '../text.ts'
import { LIVE } from './outcome.ts'

/** What a batch has of replays that failed again. */
export interface Refailed {
  /** Dead letters that are not a replay of this source. */
  readonly fresh: readonly DatedEntry[]
  /** Known dead letters that are open again, with the id and first failure they have. */
  readonly again: readonly DatedEntry[]
  /** The groups in which they counted as open, one for each. */
  readonly left: readonly string[]
}

/**
 * Items of this source that may have been published. The source is part of the condition because every
 * producer can write a replay id: a message in one queue must not change a dead letter of another source.
 * The source counts and not the origin, because one source may drain the dead letters of several queues.
 */
const ITEMS = `
select i.replay_id, i.dead_letter_id, i.cycle, i.state, encode(i.content_sha256, 'hex') as content,
    coalesce(r.change ?| array['edit', 'patch'], false) as is_edited
  from redrive_catalog.replay_item i join redrive_catalog.replay_run r on r.id = i.run_id
  where i.replay_id = any($1::uuid[]) and r.source_id = $2 and i.state not in ('planned', 'skipped', 'cancelled')`

const LOCK = `
select id, group_id, status, (extract(epoch from first_failed_at) * 1000)::bigint::float8 as first_ms
  from redrive_catalog.dead_letter where id = any($1::uuid[]) order by id for no key update`

interface ItemRow {
  readonly replay_id: string
  readonly dead_letter_id: string
  readonly cycle: number
  readonly state: string
  /** SHA-256 of the published body, hex. Null: nothing was published. */
  readonly content: string | null
  readonly is_edited: boolean
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
 * A replay that failed again is the same dead letter, in its next cycle. A second copy of the same replay
 * is nothing new: it is known already that it failed, or that it took effect.
 */
export async function takeRefailed(
  run: Run,
  copy: Copy,
  { sourceId, entries, keys }: RefailedBatch,
): Promise<Refailed> {
  const ids = entries.flatMap(({ drained }) => drained.delivery.replayId ?? []).filter(isId)
  if (ids.length === 0) return { fresh: entries, again: [], left: [] }
  const items = await run<ItemRow>(ITEMS, [ids, sourceId])
  const letters = await run<LetterRow>(LOCK, [items.map((item) => item.dead_letter_id)])
  // Once more, now that nobody changes them any more.
  const locked = await run<ItemRow>(ITEMS, [ids, sourceId])
  const { fresh, comebacks } = sorted(entries, locked, letters)
  await keepCycle(run, comebacks)
  await keepBodies(run, comebacks)
  await open(run, comebacks)
  const again = comebacks.map(({ entry }) => entry)
  await storePayloads(copy, again, keys)
  await run(SETTLE, [comebacks.map(({ item }) => item.replay_id)])
  const counted = comebacks.filter(({ letter }) => LIVE.includes(letter.status))
  return { fresh, again, left: counted.map(({ letter }) => letter.group_id) }
}

interface Comeback {
  readonly entry: DatedEntry
  readonly item: ItemRow
  readonly letter: LetterRow
}

const OVER: ReadonlySet<string> = new Set(['resolved', 'refailed'])

function sorted(
  entries: readonly DatedEntry[],
  items: readonly ItemRow[],
  letters: readonly LetterRow[],
): { readonly fresh: readonly DatedEntry[]; readonly comebacks: readonly Comeback[] } {
  const byReplay = new Map(items.map((item) => [item.replay_id, item]))
  const byId = new Map(letters.map((letter) => [letter.id, letter]))
  const fresh: DatedEntry[] = []
  const comebacks = new Map<string, Comeback>()
  for (const entry of entries) {
    const item = byReplay.get(entry.drained.delivery.replayId ?? '')
    const letter = byId.get(item?.dead_letter_id ?? '')
    if (item === undefined || letter === undefined || !isPublished(item, entry)) fresh.push(entry)
    else if (!OVER.has(item.state)) {
      const same = { ...entry, id: letter.id, firstFailedAt: letter.first_ms }
      comebacks.set(letter.id, { entry: same, item, letter })
    }
  }
  return { fresh, comebacks: [...comebacks.values()] }
}

/**
 * Whether the message has the body that was published. A different body must not replace the original and
 * proves nothing about the replay. It must not be dropped either, so it becomes its own dead letter; the
 * replay waits for its outcome and ends as unknown.
 */
const isPublished = ({ content }: ItemRow, { sha256 }: DatedEntry) =>
  content === sha256.toString('hex')

const KEEP_CYCLE = `
insert into redrive_catalog.failure_cycle (dead_letter_id, cycle, group_id, replay_id, first_failed_at, last_failed_at,
    attempts, reason, history)
  select d.id, d.cycle, d.group_id, c.replay_id, d.first_failed_at, d.last_failed_at, d.attempts, d.reason, d.history
    from redrive_catalog.dead_letter d join unnest($1::uuid[], $2::uuid[]) as c (id, replay_id) on c.id = d.id
  on conflict (dead_letter_id, cycle) do nothing`

async function keepCycle(run: Run, comebacks: readonly Comeback[]): Promise<void> {
  await run(KEEP_CYCLE, [
    comebacks.map(({ letter }) => letter.id),
    comebacks.map(({ item }) => item.replay_id),
  ])
}

const KEEP_BODIES = `
insert into redrive_catalog.payload_before
  select p.*, d.cycle from redrive_catalog.dead_letter_payload p join redrive_catalog.dead_letter d on d.id = p.dead_letter_id
    where p.dead_letter_id = any($1::uuid[])
  on conflict (dead_letter_id, cycle, part) do nothing`
const FORGET_BODIES = `
delete from redrive_catalog.dead_letter_payload where dead_letter_id = any($1::uuid[])`

/**
 * Makes room for the payload that came back: new headers and the published body. The original body is not
 * lost: it is the published one, or, where the run edited it, a copy in `payload_before`.
 */
async function keepBodies(run: Run, comebacks: readonly Comeback[]): Promise<void> {
  const edited = comebacks.filter(({ item }) => item.is_edited)
  await run(KEEP_BODIES, [edited.map(({ letter }) => letter.id)])
  await run(FORGET_BODIES, [comebacks.map(({ letter }) => letter.id)])
}

const OPEN = `
update redrive_catalog.dead_letter d set status = 'open', version = d.version + 1, settled_at = clock_timestamp(),
    settled_by = 'consumer', ingested_at = now(), cycle = c.cycle, group_id = c.group_id, attempts = c.attempts,
    last_failed_at = greatest(d.first_failed_at, to_timestamp(c.last_ms / 1000.0)), payload_bytes = c.bytes,
    is_quarantined = c.is_quarantined, is_tombstone = c.is_tombstone, class = c.class, reason = c.reason,
    code = c.code, key = c.key, message = c.message, headers = c.headers::jsonb, history = c.history::jsonb
  from unnest($1::uuid[], $2::integer[], $3::uuid[], $4::integer[], $5::bigint[], $6::integer[], $7::boolean[],
      $8::boolean[], $9::text[], $10::text[], $11::text[], $12::text[], $13::text[], $14::text[], $15::text[])
    as c (id, cycle, group_id, attempts, last_ms, bytes, is_quarantined, is_tombstone, class, reason, code, key,
      message, headers, history)
  where d.id = c.id`

async function open(run: Run, comebacks: readonly Comeback[]): Promise<void> {
  const rows = comebacks.map(rowOf)
  const columns = Array.from({ length: OPEN_COLUMNS }, (_, column) =>
    rows.map((row) => row[column]),
  )
  await run(OPEN, columns)
}

const OPEN_COLUMNS = 15

/** As the parameters of the statement above. */
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
  ]
}

const SETTLE = `
update redrive_catalog.replay_item set state = 'refailed', settled_at = clock_timestamp(), lease_until = null,
    proof = 'dead letter'
  where replay_id = any($1::uuid[]) and state not in ('planned', 'skipped', 'cancelled')`
