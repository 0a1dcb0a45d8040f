import { readFile, writeFile } from 'node:fs/promises'
import { RedriveError } from '@redrive/core'
import type { Pool } from 'pg'
import { inTransaction, query, type Run } from '../database.ts'
import { NAME_MAX, storable } from '../text.ts'

/**
 * A catalog that was restored from a backup believes that replays made since then are still to be made.
 * It can be told: what it says about itself is not what is written in it. A copy of the files says the
 * same, but its beat is smaller than the one this process remembers.
 */
const READ = `
select identity, redrive_catalog.identity() as now, beat::text, frozen_because from redrive_catalog.replay_epoch`
const LOCKED = `${READ} for update`

const GROW = `update redrive_catalog.replay_epoch set beat = beat + 1 returning beat::text`
const FREEZE = `
update redrive_catalog.replay_epoch set frozen_at = clock_timestamp(), frozen_because = $1 where frozen_because is null`
/**
 * The ms since 1970: beyond what any process can remember of the state before, since a beat is a second or more,
 * and beyond what a restore that was acknowledged earlier began with.
 */
const BEYOND = 'greatest(beat + 1, (extract(epoch from clock_timestamp()) * 1000)::bigint)'
const THAW = `
update redrive_catalog.replay_epoch set identity = redrive_catalog.identity(), beat = ${BEYOND}, frozen_at = null,
    frozen_because = null, acknowledged_by = $1, acknowledged_at = clock_timestamp()`

interface EpochRow {
  readonly identity: string
  readonly now: string
  readonly beat: string
  readonly frozen_because: string | null
}

/** 1 s between two beats: what a restore could take back without being noticed by the beat alone. */
const BEAT_MS = 1_000

/** What one process remembers about the database, and a file beyond its end. */
export class Epoch {
  readonly #witness: string | undefined
  #beat: bigint | undefined
  #beatAt = Number.NEGATIVE_INFINITY

  constructor(witness: string | undefined) {
    this.#witness = witness
  }

  /** Why nothing may be replayed now; undefined when it may. Freezes when the database is not the one it was. */
  async problem(pool: Pool): Promise<string | undefined> {
    this.#beat ??= await readWitness(this.#witness)
    // From before the question: while it is answered, another turn of this process may be further.
    const known = this.#beat
    const isDue = performance.now() - this.#beatAt >= BEAT_MS
    const { because, beat } = await inTransaction(pool, (run) => look(run, known, isDue))
    // Only what is committed is remembered: what is rolled back would look like a restore.
    if (beat !== undefined) await this.#remember(beat)
    return because
  }

  async #remember(beat: bigint): Promise<void> {
    if (beat <= (this.#beat ?? 0n)) return
    this.#beat = beat
    this.#beatAt = performance.now()
    if (this.#witness !== undefined) await writeFile(this.#witness, `${beat}\n`)
  }
}

interface Looked {
  readonly because?: string
  /** What is remembered from now on. */
  readonly beat?: bigint
}

async function look(run: Run, known: bigint, isDue: boolean): Promise<Looked> {
  const [row] = await run<EpochRow>(isDue ? LOCKED : READ)
  if (row === undefined) return { because: 'The schema redrive_catalog is not complete.' }
  if (row.frozen_because !== null) return { because: row.frozen_because }
  const because = changed(row, known)
  // Not by what was read without the lock: someone may be acknowledging it.
  if (because !== undefined && !isDue) return look(run, known, true)
  if (because !== undefined) {
    await run(FREEZE, [because])
    return { because }
  }
  if (!isDue) return {}
  const [grown] = await run<{ beat: string }>(GROW)
  return { beat: BigInt(grown?.beat ?? 0) }
}

function changed(row: EpochRow, known: bigint): string | undefined {
  if (BigInt(row.beat) >= known) return movedBecause(row)
  return `The catalog is in an earlier state than it was (${row.beat} is before ${known}): it was restored.`
}

function movedBecause({ identity, now }: EpochRow): string | undefined {
  if (identity === now) return undefined
  return `The catalog is not in the database it was in: it was restored, or a replica took over (${identity} is ${now} now).`
}

async function readWitness(path: string | undefined): Promise<bigint> {
  if (path === undefined) return 0n
  try {
    return BigInt((await readFile(path, 'utf8')).trim() || 0)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return 0n
    throw error
  }
}

/** Rejects when replays are frozen, or will be as soon as someone replays. */
export async function refuseFrozen(run: Run): Promise<void> {
  const [row] = await run<EpochRow>(READ)
  if (row === undefined) return
  const because = row.frozen_because ?? movedBecause(row)
  if (because === undefined) return
  throw new RedriveError(
    'CONFLICT',
    `Replays are frozen. ${because} Replays made since the backup may be made again: the inbox of the consumers removes them, consumers without one do them twice. Look, then acknowledge the restore: redrive replay acknowledge-restore.`,
  )
}

/** Why replays are frozen; undefined when they are not. */
export async function frozenBecause(pool: Pool): Promise<string | undefined> {
  const { rows } = await query<EpochRow>(pool, READ)
  return rows[0]?.frozen_because ?? undefined
}

/** Someone has looked: replays may go on in the database as it is now. */
export async function acknowledgeRestore(pool: Pool, by: string): Promise<void> {
  await query(pool, THAW, [storable(by, NAME_MAX)])
}
