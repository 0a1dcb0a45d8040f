import { isRedriveError, RedriveError } from '@redrive/core'
import type { DeadLetterSource, DrainedDeadLetter } from '@redrive/runtime'
import type { Pool } from 'pg'
import { query } from '../database.ts'
import type { PayloadKeys } from '../encryption.ts'
import { type Reader, reading } from '../read/sql.ts'
import { KINDS, type Kind, type Size } from './kinds.ts'
import { STOP_INGEST } from './statements.ts'

export interface PutBackOptions {
  /** Name of the source in the catalog. Default: the name of the source itself. */
  readonly name?: string
  /** Receives the progress after each batch. Default: none. */
  readonly onProgress?: (progress: PutBackProgress) => void
  /** Ends the call after the current batch. The next call continues. */
  readonly signal?: AbortSignal
}

export interface PutBackProgress {
  /** Number of open dead letters and set-aside messages at the start. */
  readonly total: number
  /** Number of them that are in the broker again and no longer in the catalog. */
  readonly done: number
}

export interface PutBackResult extends PutBackProgress {
  /** Messages that the broker or the transport rejected, with the reason. They stay in the catalog. */
  readonly refused: readonly { readonly id: string; readonly reason: string }[]
  /** Number of dead letters and set-aside messages with a replay in progress. They stay in the catalog. */
  readonly replaying: number
  /** Number of dead letters with an unknown outcome. They stay in the catalog. */
  readonly unknown: number
  /** Number of set-aside messages with a requested replay. They stay in the catalog. */
  readonly setAside: number
}

export interface PutBackDeps {
  readonly pool: Pool
  readonly reader: Reader
  readonly keys: PayloadKeys | undefined
}

/** 100: one round trip to the broker. After a crash, at most this many are in the broker and in the catalog. */
const BATCH = 100
/** 16 MiB of bodies, so that large ones do not fill the memory. */
const BATCH_BYTES = 16_777_216
const FIRST_ID = '00000000-0000-0000-0000-000000000000'

/**
 * Moves the open dead letters and set-aside messages of a source back into its dead-letter queue. First it stops the
 * ingest. Each batch is deleted here after the broker has confirmed it. So a message is always in the catalog, in the
 * broker or, after a crash, in both.
 */
export async function putBackAll(
  deps: PutBackDeps,
  source: DeadLetterSource,
  options: PutBackOptions,
): Promise<PutBackResult> {
  const put = source.putBack?.bind(source)
  if (put === undefined) throw notPossible(source.source)
  const { name = source.source, onProgress, signal } = options
  const sourceId = await stopIngest(deps.pool, name, true)
  const total = sumOf(await openCounts(deps.pool, sourceId))
  const refused: Refusal[] = []
  let done = 0
  for (const kind of KINDS) {
    let after = FIRST_ID
    while (signal?.aborted !== true) {
      const { letters, lastId } = await readBatch(deps, kind, { sourceId, after, refused })
      if (lastId === undefined) break
      after = lastId
      const stored = await putOrSplit(put, letters, refused)
      done += await deleteStored(deps.pool, kind, stored)
      onProgress?.({ total, done })
    }
  }
  const [letters, aside] = await Promise.all(
    KINDS.map((kind) => unsettledOf(deps.pool, kind, sourceId)),
  )
  const { unknown = 0 } = letters ?? {}
  const replaying = sumOf([letters, aside].map((counts) => counts?.['replaying'] ?? 0))
  const setAside = aside?.['requested'] ?? 0
  return { total, done, refused, replaying, unknown, setAside }
}

/** Starts the ingest of a source again. */
export async function startIngest(pool: Pool, name: string): Promise<void> {
  await stopIngest(pool, name, false)
}

type Refusal = PutBackResult['refused'][number]

interface Letter {
  readonly id: string
  readonly drained: DrainedDeadLetter
}

async function readBatch(
  { reader, keys }: PutBackDeps,
  kind: Kind,
  {
    sourceId,
    after,
    refused,
  }: { readonly sourceId: number; readonly after: string; readonly refused: Refusal[] },
): Promise<{ readonly letters: readonly Letter[]; readonly lastId: string | undefined }> {
  return reading(reader, async (run) => {
    const sizes = fitting(await run<Size>(kind.openAfter, [sourceId, after, BATCH]))
    const found = await kind.read(run, keys, sizes)
    const letters: Letter[] = []
    for (const { id } of sizes) {
      const drained = found.get(id)
      if (drained === undefined) refused.push({ id, reason: NOT_STORED })
      else letters.push({ id, drained })
    }
    return { letters, lastId: sizes.at(-1)?.id }
  })
}

const NOT_STORED = 'The catalog does not have all of its bytes and headers. Discard it.'

/** Returns the first rows whose bodies fit into memory together, at least one. */
function fitting(rows: readonly Size[]): readonly Size[] {
  let total = 0
  return rows.filter(({ bytes }, at) => {
    total += bytes
    return at === 0 || total <= BATCH_BYTES
  })
}

/** Stores a batch in the broker. If the transport rejects a dead letter, the others are stored one by one. */
async function putOrSplit(
  put: NonNullable<DeadLetterSource['putBack']>,
  letters: readonly Letter[],
  refused: Refusal[],
): Promise<readonly string[]> {
  if (letters.length === 0) return []
  try {
    await put(letters.map(({ drained }) => drained))
    return letters.map(({ id }) => id)
  } catch (error) {
    if (!isRedriveError(error, 'REFUSED')) throw error
    const [only] = letters
    if (letters.length > 1) {
      const stored: string[] = []
      for (const one of letters) stored.push(...(await putOrSplit(put, [one], refused)))
      return stored
    }
    if (only !== undefined) refused.push({ id: only.id, reason: error.message })
    return []
  }
}

async function deleteStored(pool: Pool, { remove }: Kind, ids: readonly string[]): Promise<number> {
  if (ids.length === 0) return 0
  const { rows } = await query<{ deleted: number }>(pool, remove, [ids])
  return rows[0]?.deleted ?? 0
}

async function stopIngest(pool: Pool, name: string, isStopped: boolean): Promise<number> {
  const { rows } = await query<{ id: number | null }>(pool, STOP_INGEST, [name, isStopped])
  const id = rows[0]?.id ?? undefined
  if (id === undefined) throw notFound(name)
  return id
}

const openCounts = (pool: Pool, sourceId: number) =>
  Promise.all(KINDS.map(async (kind) => (await unsettledOf(pool, kind, sourceId))['open'] ?? 0))

const sumOf = (counts: readonly number[]) => counts.reduce((sum, one) => sum + one, 0)

/** Counts the rows of a source that are not settled, by status. */
async function unsettledOf(
  pool: Pool,
  { countUnsettled }: Kind,
  sourceId: number,
): Promise<Readonly<Record<string, number>>> {
  const { rows } = await query<{ status: string; count: number }>(pool, countUnsettled, [sourceId])
  return Object.fromEntries(rows.map(({ status, count }) => [status, count]))
}

const notFound = (name: string) =>
  new RedriveError('REFUSED', `The catalog has no source "${name}". List them: redrive sources`)

const notPossible = (name: string) =>
  new RedriveError(
    'CAPABILITY_MISSING',
    `The transport of "${name}" cannot put dead letters back. Replay or discard them.`,
  )
