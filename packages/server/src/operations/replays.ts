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
import { shownItem } from './shown.ts'
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
  const { catalog, guard, reading } = parts
  const runs = catalog.replays
  const requireRun = async (caller: Caller, id: string) => {
    const found = await runs.run(id)
    if (found === undefined) throw notFound('run')
    return runView(reading, caller, found)
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
    return runView(reading, audited.caller, run)
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
      return {
        runs: page.runs.map((run) => runView(reading, caller, run)),
        nextCursor: page.nextCursor,
      }
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
      const items = await runs.items({ ...omitUndefined(query), run: id })
      return { items: items.map((one) => shownItem(reading, one)) }
    },

    async approveReplay(caller, { params: { id: subject }, body: { hash } }) {
      const audited = { caller, operation: 'approveReplay', subject } as const
      const source = await guard.sourceOf(audited, 'run', subject, 'approve')
      const needed = actionsToSee(await runs.change(subject))
      await guard.check({ ...audited, source }, source, needed, 'run')
      const work = async (by: { readonly by: string }) => {
        const renew = (await endedApproval(parts, await runs.run(subject))) !== undefined
        return runs.approve(subject, { hash, renew, ...by })
      }
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
        const ended = await endedApproval(parts, await runs.run(subject))
        if (ended !== undefined) throw new ProblemError('conflict', ended)
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

/** Returns why the approval of a run has ended, or undefined: its planner or approver has lost the permission since. */
async function endedApproval(
  { identity }: OperationDeps,
  run: ReplayRun | undefined,
): Promise<string | undefined> {
  if (run === undefined) return undefined
  const { source, plannedBy, approvedBy } = run
  const people = [
    ['planned', plannedBy, 'replay'],
    ['approved', approvedBy, 'approve'],
  ] as const
  for (const [did, person, action] of people) {
    if (person === undefined || person === NOBODY) continue
    if (grantsAllow(await identity.grantsOf(person), action, source)) continue
    return `The user who ${did} this run no longer has permission "${action}" on source "${source}", or has not signed in for longer than auth.oidc.groupsMaxAge. So its approval has ended. Ask another person to approve it again.`
  }
  return undefined
}
