import { setTimeout as after } from 'node:timers/promises'
import { RedriveError } from '@redrive/core'
import type { Pool } from 'pg'
import type { Log } from './log.ts'

/** 250 ms, doubled each time up to 5 s. A restarted database is found soon; a missing one gets little load. */
const FIRST_WAIT_MS = 250
const LONGEST_WAIT_MS = 5_000

/** SQLSTATEs that waiting does not solve: wrong password, user or database, or a missing privilege. */
const PERMANENT: ReadonlySet<string> = new Set(['28P01', '28000', '3D000', '42501'])

export interface WaitOptions {
  readonly waitMs: number
  readonly log: Log
  /** Stops the waiting. */
  readonly signal: AbortSignal
}

/** Resolves when the database accepts a query. Logs each failed attempt and rejects after `waitMs`. */
export async function whenDatabaseAnswers(
  pool: Pool,
  { waitMs, log, signal }: WaitOptions,
): Promise<void> {
  const endsAt = performance.now() + waitMs
  for (let restMs = FIRST_WAIT_MS; ; restMs = Math.min(restMs * 2, LONGEST_WAIT_MS)) {
    const failure = await connectionFailure(pool)
    if (failure === undefined) return
    const leftMs = endsAt - performance.now()
    if (failure.isPermanent || leftMs <= 0 || signal.aborted) throw unreachable(failure)
    const left = `${Math.ceil(leftMs / 1_000)} s`
    log.warn(`Cannot connect to the database (${failure.text}). Retrying for another ${left}.`)
    // It rejects when the signal fires. The next iteration checks the signal.
    await after(Math.min(restMs, leftMs), undefined, { signal }).catch(() => undefined)
  }
}

interface ConnectionFailure {
  readonly text: string
  readonly isPermanent: boolean
  readonly cause: unknown
}

async function connectionFailure(pool: Pool): Promise<ConnectionFailure | undefined> {
  try {
    await pool.query('select 1')
    return undefined
  } catch (cause) {
    const { code = '', message } = cause as Error & { readonly code?: string }
    return { text: message === '' ? code : message, isPermanent: PERMANENT.has(code), cause }
  }
}

const unreachable = ({ text, cause }: ConnectionFailure) =>
  new RedriveError('UNREACHABLE', `Cannot connect to the database: ${text}. Check database.url.`, {
    cause,
  })
