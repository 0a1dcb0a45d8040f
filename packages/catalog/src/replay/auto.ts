import { type Duration, parseDuration, RedriveError } from '@redrive/core'
import type { Pool } from 'pg'
import { inTransaction, query, type RunSql } from '../database.ts'
import { NAME_MAX, storable } from '../text.ts'
import { type ApprovalRule, conflict } from './run/lifecycle.ts'
import { DUE_GROUPS, LOCK_AUTO_REPLAY, SET_AUTO_REPLAY, STILL_DUE } from './statements.ts'

/** Options for automatic replays of transient failures. No user has to approve these runs. */
export interface AutoReplay {
  /** Name of the user who requests it, or who approves the request of another user. */
  readonly by: string
  /**
   * How long a group must have no new failures before its dead letters are replayed ('1m' to '24h', default '5m').
   */
  readonly quietFor?: Duration
  /** Published messages per second (0.1 to 100, default 10). */
  readonly ratePerSecond?: number
}

/** `requested`: another user must enable it with the same options. */
export type AutoReplayState = 'enabled' | 'requested' | 'disabled'

const QUIET_MS = 300_000
const LEAST_QUIET_MS = 60_000
const MOST_QUIET_MS = 86_400_000
const RATE = 10
const LEAST_RATE = 0.1
const MOST_RATE = 100

/**
 * Requests or approves automatic replays for one source; `undefined` disables them. They approve all future runs, so
 * they need two people, unless anyone may approve. They are disabled by default.
 */
export async function enableAutoReplay(
  pool: Pool,
  source: string,
  auto: AutoReplay | undefined,
  rule: ApprovalRule,
): Promise<AutoReplayState> {
  const wanted = auto === undefined ? undefined : resolved(auto)
  return inTransaction(pool, async (run) => {
    const [found] = await run<{ auto_replay: StoredAutoReplay | null }>(LOCK_AUTO_REPLAY, [
      storable(source, NAME_MAX),
    ])
    if (found === undefined) {
      throw conflict(
        `The catalog has no source "${source}". Check the name. A new source exists after its first ingest.`,
      )
    }
    const next = wanted === undefined ? null : nextOf(found.auto_replay, wanted, rule)
    await run(SET_AUTO_REPLAY, [storable(source, NAME_MAX), next && JSON.stringify(next)])
    if (next === null) return 'disabled'
    return next.by === undefined ? 'requested' : 'enabled'
  })
}

interface StoredAutoReplay {
  /** The user who requested it. Undefined in rows of earlier releases. */
  readonly requestedBy?: string
  /** The user who approved it. Recorded as the approver of every run. Undefined: not approved yet. */
  readonly by?: string
  readonly quietMs: number
  readonly ratePerSecond: number
}

/** Returns a request, or the approved request if another user had requested the same. */
function nextOf(
  stored: StoredAutoReplay | null,
  { by, ...options }: ResolvedAutoReplay,
  rule: ApprovalRule,
): StoredAutoReplay {
  if (rule === 'anyone') return { requestedBy: by, by, ...options }
  const isSame =
    stored !== null &&
    stored.quietMs === options.quietMs &&
    stored.ratePerSecond === options.ratePerSecond
  // A source that is already enabled stays enabled.
  if (isSame && stored.by !== undefined) return stored
  const { requestedBy } = isSame ? stored : {}
  if (requestedBy === undefined || requestedBy === by) return { requestedBy: by, ...options }
  return { requestedBy, by, ...options }
}

type ResolvedAutoReplay = Required<Omit<StoredAutoReplay, 'requestedBy'>>

function resolved({
  by,
  quietFor = QUIET_MS,
  ratePerSecond = RATE,
}: AutoReplay): ResolvedAutoReplay {
  const quietMs = parseDuration(quietFor) ?? Number.NaN
  const problems = [
    ...(by === '' ? ['by: expected the user who enables it, got an empty text'] : []),
    ...(quietMs >= LEAST_QUIET_MS && quietMs <= MOST_QUIET_MS
      ? []
      : [`quietFor: expected '1m' to '24h', got '${quietFor}'`]),
    ...(ratePerSecond >= LEAST_RATE && ratePerSecond <= MOST_RATE
      ? []
      : [`ratePerSecond: expected ${LEAST_RATE} to ${MOST_RATE}, got ${ratePerSecond}`]),
  ]
  if (problems.length === 0) return { by: storable(by, NAME_MAX), quietMs, ratePerSecond }
  const message = `The options of automatic replay are invalid:\n- ${problems.join('\n- ')}`
  throw new RedriveError('POLICY_INVALID', message, { problems })
}

/** An automatic run that is about to start. */
export interface AutoReplayRun {
  readonly run: string
  readonly source: string
  readonly group: string
  /** The user who requested automatic replays of the source. Undefined: an earlier release enabled them. */
  readonly requestedBy: string | undefined
  /** The user who approved automatic replays of the source. */
  readonly approvedBy: string
}

/** A group whose dead letters can be replayed now. */
export interface DueGroup {
  readonly id: string
  readonly source: string
  readonly requested_by: string | null
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
