import type { DrainedDeadLetter } from '@redrive/runtime'
import type { Pool } from 'pg'
import { inTransaction } from '../../database.ts'
import { sha256Of } from '../../ingest/identity.ts'
import { readDrained } from '../../read/payload.ts'
import type { ReplayDeps } from '../run/context.ts'
import { changed, readChange } from '../run/payload-change.ts'
import { type ReplayKey, signedId } from '../signed-id.ts'
import { begin, type Claim, type ClaimedItem } from './claim.ts'
import { SIZES } from './statements.ts'

/** 100 items and 32 MiB of bodies per chunk: two chunks are in memory at the same time. */
const CHUNK_ITEMS = 100
const CHUNK_BYTES = 33_554_432

interface SizedItem extends ClaimedItem {
  readonly bytes: number
}

/** Splits the items into chunks that fit into memory, in the order of the run. */
export async function chunksOf(
  pool: Pool,
  items: readonly ClaimedItem[],
): Promise<readonly (readonly SizedItem[])[]> {
  const ids = items.map((item) => item.dead_letter_id)
  const { rows } = await pool.query<{ id: string; payload_bytes: number }>(SIZES, [ids])
  const sizes = new Map(rows.map(({ id, payload_bytes }) => [id, payload_bytes]))
  const chunks: SizedItem[][] = []
  let room = 0
  for (const item of items) {
    const bytes = sizes.get(item.dead_letter_id) ?? 0
    const last = chunks.at(-1)
    if (last === undefined || bytes > room || last.length === CHUNK_ITEMS) {
      chunks.push([{ ...item, bytes }])
      room = CHUNK_BYTES - bytes
    } else {
      last.push({ ...item, bytes })
      room -= bytes
    }
  }
  return chunks
}

/** An item whose message can be published. */
export interface ReadyItem extends PreparedItem {
  /** The replay id that the message carries. */
  readonly signedId: string
}

interface PreparedItem {
  readonly item: ClaimedItem
  /** SHA-256 of the body, hex. */
  readonly content: string
  readonly deadLetter: DrainedDeadLetter
}

/** The items of a chunk that this claim owns. */
export interface ReadyChunk {
  readonly items: readonly ReadyItem[]
  /** When the run was last known to be running (`performance.now()`). */
  readonly checkedAt: number
}

/** An error for an item that cannot be published. The run pauses until an operator has checked it. */
export class NotReady extends Error {}

/** Reads a chunk and marks it as publishing. Returns the items that this claim still owns. */
export async function beginChunk(
  deps: ReplayDeps,
  claimed: Claim,
  chunk: readonly SizedItem[] = [],
): Promise<ReadyChunk> {
  const ready = await prepare(deps, claimed, chunk)
  // Taken before the query: a pause that commits during the query is not seen by it.
  const checkedAt = performance.now()
  const owned = await begin(
    deps.pool,
    claimed,
    ready.map(({ item, content }) => ({ place: item.place, content })),
  )
  const items = ready.flatMap((one) => {
    const key = owned.get(one.item.place)
    return key === undefined ? [] : [{ ...one, signedId: signedIdOf(one, claimed, key) }]
  })
  return { items, checkedAt }
}

function signedIdOf(
  { item, content }: PreparedItem,
  { runId, sourceId }: Claim,
  key: ReplayKey | null,
): string {
  const { replay_id: replayId, dead_letter_id: deadLetterId } = item
  return key === null
    ? replayId
    : signedId({ replayId, sourceId, deadLetterId, runId, content }, key)
}

/** Reads and changes the messages. Throws if a changed body is not the approved one. */
async function prepare(
  { pool, keys }: ReplayDeps,
  claimed: Claim,
  items: readonly SizedItem[],
): Promise<readonly PreparedItem[]> {
  if (items.length === 0) return []
  const change = await readChange(claimed.change, claimed.runId, keys)
  const sizes = items.map((item) => ({ id: item.dead_letter_id, bytes: item.bytes }))
  const drained = await inTransaction(pool, (run) => readDrained(run, keys, sizes))
  return items.map((item) => {
    const one = drained.get(item.dead_letter_id)
    if (one === undefined) {
      throw new NotReady(`The payload of the dead letter "${item.dead_letter_id}" is missing.`)
    }
    const deadLetter = changed(one, change)
    const content = sha256Of(deadLetter.delivery.bytes).toString('hex')
    if (item.content === null || item.content === content) return { item, content, deadLetter }
    throw new NotReady(
      `The changed body of the dead letter "${item.dead_letter_id}" is not the approved one. Cancel the run and plan it again.`,
    )
  })
}
