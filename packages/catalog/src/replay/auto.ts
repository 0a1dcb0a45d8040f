import { type Duration, parseDuration, RedriveError } from '@redrive/core'
import type { Pool } from 'pg'
import { query, type RunSql } from '../database.ts'
import { NAME_MAX, storable } from '../text.ts'
import { conflict } from './run/lifecycle.ts'
import { SET_AUTO_REPLAY, DUE_GROUPS, STILL_DUE } from './statements.ts'

/** Options for automatic replays of transient failures. No user has to approve these runs. */
export interface AutoReplay {
  /** Name of the user who enables it. The user is recorded as the approver of every run. */
  readonly by: string
  /** How long a group must have no new failures before its dead letters are replayed. Default '5m'. */
  readonly quietFor?: Duration
  /** Published messages per second, default 10. */
  readonly ratePerSecond?: number
}

const QUIET_MS = 300_000
const RATE = 10

/** Enables automatic replays for one source; `undefined` disables them. They are disabled by default. */
export async function enableAutoReplay(
  pool: Pool,
  source: string,
  auto: AutoReplay | undefined,
): Promise<void> {
  const stored = auto === undefined ? null : JSON.stringify(resolved(auto))
  const { rowCount } = await query(pool, SET_AUTO_REPLAY, [storable(source, NAME_MAX), stored])
  if (rowCount === 0) {
    throw conflict(
      `The catalog has no source "${source}". Check the name. A new source exists after its first ingest.`,
    )
  }
}

interface StoredAutoReplay {
  readonly by: string
  readonly quietMs: number
  readonly ratePerSecond: number
}

function resolved({ by, quietFor = QUIET_MS, ratePerSecond = RATE }: AutoReplay): StoredAutoReplay {
  const quietMs = parseDuration(quietFor)
  if (by !== '' && quietMs !== undefined) {
    return { by: storable(by, NAME_MAX), quietMs, ratePerSecond }
  }
  throw new RedriveError(
    'POLICY_INVALID',
    `Expected "by" (the user who enables automatic replay) and "quietFor" (a duration such as '5m'), got '${by}' and '${quietFor}'.`,
  )
}

/** A group whose dead letters can be replayed now. */
export interface DueGroup {
  readonly id: string
  readonly source: string
  readonly by: string
  readonly rate: number
  /** The current hour. A group is replayed at most once per hour. */
  readonly hour: string
}

/**
 * Whether the replay is still allowed and the group still open. Planning other groups takes time, and a user may
 * have disabled automatic replays, or muted or resolved the group since.
 */
export const isStillDue = async (run: RunSql, group: string): Promise<boolean> =>
  (await run(STILL_DUE, [group])).length > 0

export async function dueGroups(
  pool: Pool,
  sources: readonly string[],
): Promise<readonly DueGroup[]> {
  const { rows } = await query<DueGroup>(pool, DUE_GROUPS, [sources])
  return rows
}
