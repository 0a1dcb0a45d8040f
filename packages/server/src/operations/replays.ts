import type { Output } from '@redrive/api'
import type { Action } from '@redrive/api/enums'
import type { ReplayRun } from '@redrive/catalog'
import { grantsAllow } from '../access/allow.ts'
import type { Caller } from '../access/caller.ts'
import { ProblemError } from '../access/problem-error.ts'
import { notFound } from './authorize.ts'
import type { Handlers } from './handlers.ts'
import type { OperationDeps } from './context.ts'
import { plan } from './plan.ts'
import { omitUndefined } from './present.ts'
import { runView } from './run-view.ts'
import { actionsToSee, runChange } from './run-change.ts'
import { allowedSources } from './sources.ts'
import { watch } from './stream-run.ts'

type Changing = 'approveReplay' | 'pauseReplay' | 'resumeReplay' | 'cancelReplay'
type Reading =
  | 'planReplay'
  | 'listReplays'
  | 'getReplay'
  | 'getReplayChange'
  | 'watchReplay'
  | 'listReplayItems'

export function replays(parts: OperationDeps): Handlers<Changing | Reading> {
  const { catalog, guard } = parts
  const runs = catalog.replays
  const requireRun = async (caller: Caller, id: string) => {
    const found = await runs.run(id)
    if (found === undefined) throw notFound('run')
    return runView(caller, found)
  }
  /** Checks permissions, writes the audit log and changes a run. */
  const change = async (
    audited: { readonly caller: Caller; readonly operation: Changing; readonly subject: string },
    action: Action,
    work: (by: { readonly by: string }) => Promise<ReplayRun>,
    facts: Readonly<Record<string, unknown>> = {},
  ): Promise<Output<Changing>> => {
    const source = await guard.sourceOf(audited, 'run', audited.subject, action)
    const by = { by: audited.caller.person }
    const run = await guard.mutate({ ...audited, source, facts }, () => work(by))
    return runView(audited.caller, run)
  }
  return {
    ...plan(parts),
    ...runChange(parts),

    async listReplays(caller, { query = {} }) {
      const { source, ...rest } = omitUndefined(query)
      const sources = await allowedSources(
        catalog,
        caller,
        source === undefined ? undefined : [source],
      )
      if (sources?.length === 0) return { runs: [] }
      const page = await runs.runs({ ...rest, ...omitUndefined({ sources }) })
      return { runs: page.runs.map((run) => runView(caller, run)), nextCursor: page.nextCursor }
    },

    async getReplay(caller, { params: { id } }) {
      await guard.sourceOf({ caller, operation: 'getReplay' }, 'run', id)
      return requireRun(caller, id)
    },

    async watchReplay(caller, { params: { id } }, { signal }) {
      await guard.sourceOf({ caller, operation: 'watchReplay' }, 'run', id)
      return watch(await requireRun(caller, id), () => requireRun(caller, id), signal)
    },

    async listReplayItems(caller, { params: { id }, query = {} }) {
      await guard.sourceOf({ caller, operation: 'listReplayItems' }, 'run', id)
      return { items: [...(await runs.items({ ...omitUndefined(query), run: id }))] }
    },

    async approveReplay(caller, { params: { id: subject }, body: { hash } }) {
      const audited = { caller, operation: 'approveReplay', subject } as const
      const source = await guard.sourceOf(audited, 'run', subject, 'approve')
      const needed = actionsToSee(await runs.change(subject))
      await guard.check({ ...audited, source }, source, needed, 'run')
      const work = (by: { readonly by: string }) => runs.approve(subject, { hash, ...by })
      return change(audited, 'approve', work, { hash })
    },

    async pauseReplay(caller, { params: { id: subject } }) {
      return change({ caller, operation: 'pauseReplay', subject }, 'replay', (by) =>
        runs.pause(subject, by),
      )
    },

    async resumeReplay(caller, { params: { id: subject } }) {
      const audited = { caller, operation: 'resumeReplay', subject } as const
      return change(audited, 'replay', async (by) => {
        await refuseEndedApproval(parts, await runs.run(subject))
        return runs.resume(subject, by)
      })
    },

    async cancelReplay(caller, { params: { id: subject } }) {
      return change({ caller, operation: 'cancelReplay', subject }, 'replay', (by) =>
        runs.cancel(subject, by),
      )
    },
  }
}

/** The planner of automatic replays. It is not a person. */
const NOBODY = 'redrive'

/** Rejects a run whose planner or approver has lost the permission since. Another person must approve it again. */
async function refuseEndedApproval(
  { identity }: OperationDeps,
  run: ReplayRun | undefined,
): Promise<void> {
  if (run === undefined) return
  const { source, plannedBy, approvedBy } = run
  const people = [
    ['planned', plannedBy, 'replay'],
    ['approved', approvedBy, 'approve'],
  ] as const
  for (const [did, person, action] of people) {
    if (person === undefined || person === NOBODY) continue
    const grants = await identity.grantsOf(person)
    if (grantsAllow(grants, action, source)) continue
    throw new ProblemError(
      'conflict',
      `The user who ${did} this run no longer has permission "${action}" on source "${source}", so its approval has ended. Ask another person to approve it again.`,
    )
  }
}
