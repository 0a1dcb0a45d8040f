import { readFile, writeFile } from 'node:fs/promises'
import { RedriveError } from '@redrive/core'
import type { Pool } from 'pg'
import { inTransaction, query, type RunSql } from '../../database.ts'
import { NAME_MAX, storable } from '../../text.ts'
import { READ_EPOCH, LOCK_EPOCH, GROW_BEAT, FREEZE, ACKNOWLEDGE } from './statements.ts'

interface EpochRow {
  readonly identity: string
  readonly now: string
  readonly beat: string
  readonly frozen_because: string | null
}

/** 1 s between two increments. A restore to a state less than 1 s old is not detected by the counter alone. */
const BEAT_MS = 1_000

/**
 * Detects a restored database. A catalog that was restored from a backup would repeat the replays made since the
 * backup. A restore is detected in two ways. The identity of the database is not the one stored in it. Or, for a
 * copy of the database files, the liveness counter (`beat`) is smaller than the last one of this process. The last
 * counter is remembered in this process and, after its end, in a file.
 */
export class Epoch {
  readonly #markerFile: string | undefined
  #beat: bigint | undefined
  #beatAt = Number.NEGATIVE_INFINITY

  constructor(restoreMarkerFile: string | undefined) {
    this.#markerFile = restoreMarkerFile
  }

  /** Returns why replays are frozen, or undefined if they are not. Freezes them if it detects a restore. */
  async problem(pool: Pool): Promise<string | undefined> {
    this.#beat ??= await readMarker(this.#markerFile)
    // Read before the query, because another turn of this process can increase the counter during it.
    const known = this.#beat
    const isDue = performance.now() - this.#beatAt >= BEAT_MS
    const { because, beat } = await inTransaction(pool, (run) => checkEpoch(run, known, isDue))
    // Only a committed counter is remembered: a counter that was rolled back would look like a restore.
    if (beat !== undefined) await this.#remember(beat)
    return because
  }

  async #remember(beat: bigint): Promise<void> {
    if (beat <= (this.#beat ?? 0n)) return
    this.#beat = beat
    this.#beatAt = performance.now()
    if (this.#markerFile !== undefined) await writeFile(this.#markerFile, `${beat}\n`)
  }
}

interface EpochCheck {
  readonly because?: string
  /** The new counter to remember. */
  readonly beat?: bigint
}

async function checkEpoch(run: RunSql, known: bigint, isDue: boolean): Promise<EpochCheck> {
  const [row] = await run<EpochRow>(isDue ? LOCK_EPOCH : READ_EPOCH)
  if (row === undefined) return { because: 'The schema redrive_catalog is incomplete.' }
  if (row.frozen_because !== null) return { because: row.frozen_because }
  const because = restoredBecause(row, known)
  // Checks again with the lock before freezing, because a user may be acknowledging the restore now.
  if (because !== undefined && !isDue) return checkEpoch(run, known, true)
  if (because !== undefined) {
    await run(FREEZE, [because])
    return { because }
  }
  if (!isDue) return {}
  const [grown] = await run<{ beat: string }>(GROW_BEAT)
  return { beat: BigInt(grown?.beat ?? 0) }
}

function restoredBecause(row: EpochRow, known: bigint): string | undefined {
  if (BigInt(row.beat) >= known) return movedBecause(row)
  return `The catalog was restored to an earlier state: its counter is ${row.beat}, and was ${known} before.`
}

function movedBecause({ identity, now }: EpochRow): string | undefined {
  if (identity === now) return undefined
  return `The catalog was restored, or a replica was promoted: the identity of the database was "${identity}" and is now "${now}".`
}

async function readMarker(path: string | undefined): Promise<bigint> {
  if (path === undefined) return 0n
  try {
    return BigInt((await readFile(path, 'utf8')).trim() || 0)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return 0n
    throw error
  }
}

/** Rejects if replays are frozen, or will be frozen by the next replay. */
export async function refuseFrozen(run: RunSql): Promise<void> {
  const [row] = await run<EpochRow>(READ_EPOCH)
  if (row === undefined) return
  const because = row.frozen_because ?? movedBecause(row)
  if (because === undefined) return
  throw new RedriveError(
    'CONFLICT',
    `Replays are frozen. ${because} Replays made since the backup may be repeated. Consumers with an inbox ignore the repetition; consumers without one process the messages twice. Check this, then acknowledge the restore: redrive replay acknowledge-restore.`,
  )
}

/** Returns why replays are frozen, or undefined if they are not. */
export async function freezeReason(pool: Pool): Promise<string | undefined> {
  const { rows } = await query<EpochRow>(pool, READ_EPOCH)
  return rows[0]?.frozen_because ?? undefined
}

/** Allows replays in the database as it is now, after a user has checked the restore. */
export async function acknowledgeRestore(pool: Pool, by: string): Promise<void> {
  await query(pool, ACKNOWLEDGE, [storable(by, NAME_MAX)])
}
