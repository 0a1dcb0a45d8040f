import type { Output } from '@redrive/api'
import type { ReplayRun } from '@redrive/catalog'
import { formatDuration, isRedriveError } from '@redrive/core'
import { grantsAllow } from '../access/allow.ts'
import { cached } from '../cached.ts'
import type { Identity } from '../identity/port.ts'
import type { OperationDeps } from './context.ts'
import { omitUndefined } from './present.ts'
import { actionsToSee, ALL_TO_SEE } from './run-change.ts'

type Run = Output<'getReplay'>

/** Returns what an approval of a run needs, or undefined when it cannot be approved. */
type ReadApproval = (run: Run) => Promise<Run['approval']>

export async function withApproval(run: Run, approvalOf: ReadApproval): Promise<Run> {
  return { ...run, ...omitUndefined({ approval: await approvalOf(run) }) }
}

/** 5 s: a stream reads the run twice per second, and permissions change rarely. */
const KEPT_MS = 5_000

/** Reads what an approval of one run needs. The change of a run never changes, so it is read once. */
export function approvalReader(parts: OperationDeps, id: string): ReadApproval {
  const runs = parts.catalog.replays
  const toSee = cached(Number.POSITIVE_INFINITY, async () => {
    try {
      return actionsToSee(await runs.change(id))
    } catch (error) {
      // The key of the change is missing. The run must still be readable, so that a user can cancel it.
      if (!isRedriveError(error, 'CONFLICT')) throw error
      return ALL_TO_SEE
    }
  })
  const ended = cached(KEPT_MS, async () => {
    const run = await runs.run(id)
    return pausedTooLong(run, runs.approvalMaxPauseMs) ?? endedApproval(parts, run)
  })
  return async ({ state, isChanged }) => {
    if (state !== 'planned' && state !== 'paused') return undefined
    const endedBecause = state === 'paused' ? await ended() : undefined
    if (state === 'paused' && endedBecause === undefined) return undefined
    const actions = ['approve' as const, ...(isChanged ? await toSee() : [])]
    return { actions, ...omitUndefined({ endedBecause }) }
  }
}

/** Compares with the clock of this server. The database decides when the approval is sent. */
function pausedTooLong(run: ReplayRun | undefined, maxMs: number): string | undefined {
  if (run?.pausedAt === undefined || Date.now() - run.pausedAt <= maxMs) return undefined
  return `The run was paused for more than ${formatDuration(maxMs)}, so its approval has ended. Ask another person to approve it again.`
}

/** The planner of automatic replays. It is not a person. */
const AUTOMATIC_PLANNER = 'redrive'

/**
 * Returns why the approval of a run has ended, or undefined: its planner or approver has lost the permission since.
 * `anyAge`: groups count however old the last sign-in is. Default: only for `groupsMaxAge`.
 */
export async function endedApproval(
  { identity }: { readonly identity: Pick<Identity, 'grantsOf'> },
  run: ReplayRun | undefined,
  { anyAge = false }: { readonly anyAge?: boolean } = {},
): Promise<string | undefined> {
  if (run === undefined) return undefined
  const { source, plannedBy, approvedBy } = run
  const people = [
    ['planned', plannedBy, 'replay'],
    ['approved', approvedBy, 'approve'],
  ] as const
  for (const [did, person, action] of people) {
    if (person === undefined || person === AUTOMATIC_PLANNER) continue
    if (grantsAllow(await identity.grantsOf(person, { anyAge }), action, source)) continue
    const orIsAway = anyAge ? '' : ', or has not signed in for longer than auth.oidc.groupsMaxAge'
    return `The user who ${did} this run no longer has permission "${action}" on source "${source}"${orIsAway}. So its approval has ended. Ask another person to approve it again.`
  }
  return undefined
}
