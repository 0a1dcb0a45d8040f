import { setTimeout as after } from 'node:timers/promises'
import { RedriveError } from '@redrive/core'
import type { Pool } from 'pg'
import type { Log } from './log.ts'

/** 250 ms and twice as long each time, up to 5 s: a database that restarts is met soon, one that is gone is not hurried. */
const FIRST_WAIT_MS = 250
const LONGEST_WAIT_MS = 5_000

/** Waiting does not help against these: the password, the user or the database is not the right one. */
const HOPELESS: ReadonlySet<string> = new Set(['28P01', '28000', '3D000', '42501'])

export interface WaitOptions {
  readonly waitMs: number
  readonly log: Log
  /** Ends the waiting. */
  readonly signal: AbortSignal
}

/** Resolves when the database answers; says what it waits for, and rejects when that took too long. */
export async function whenDatabaseAnswers(
  pool: Pool,
  { waitMs, log, signal }: WaitOptions,
): Promise<void> {
  const endsAt = performance.now() + waitMs
  for (let restMs = FIRST_WAIT_MS; ; restMs = Math.min(restMs * 2, LONGEST_WAIT_MS)) {
    const why = await problemOf(pool)
    if (why === undefined) return
    const leftMs = endsAt - performance.now()
    if (why.isHopeless || leftMs <= 0 || signal.aborted) throw unreachable(why)
    const left = `${Math.ceil(leftMs / 1_000)} s`
    log.warn(`The database does not answer (${why.text}). Trying again, for another ${left}.`)
    // It rejects when the signal fires, which is seen above.
    await after(Math.min(restMs, leftMs), undefined, { signal }).catch(() => undefined)
  }
}

interface Trouble {
  readonly text: string
  readonly isHopeless: boolean
  readonly cause: unknown
}

async function problemOf(pool: Pool): Promise<Trouble | undefined> {
  try {
    await pool.query('select 1')
    return undefined
  } catch (cause) {
    const { code = '', message } = cause as Error & { readonly code?: string }
    return { text: message === '' ? code : message, isHopeless: HOPELESS.has(code), cause }
  }
}

const unreachable = ({ text, cause }: Trouble) =>
  new RedriveError(
    'UNREACHABLE',
    `The database does not answer, or does not let us in: ${text}. Look at database.url.`,
    { cause },
  )
