import type { Output } from '@redrive/api'
import type { Action } from '@redrive/api/enums'
import type { ReplayRun } from '@redrive/catalog'
import type { Caller } from '../access/caller.ts'
import { ProblemError } from '../access/problem-error.ts'
import { notFound } from './authorize.ts'
import type { Handlers } from './handlers.ts'
import type { OperationDeps } from './context.ts'
import { plan } from './plan.ts'
import { omitUndefined } from './present.ts'
import { approvalReader, endedApproval, withApproval } from './run-approval.ts'
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
  const requireRun = async (caller: Caller, id: string, approvalOf = approvalReader(parts, id)) => {
    const found = await runs.run(id)
    if (found === undefined) throw notFound('run')
    return withApproval(runView(reading, caller, found), approvalOf)
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
    return withApproval(runView(reading, audited.caller, run), approvalReader(parts, run.id))
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
      const approvalOf = approvalReader(parts, id)
      const read = () => requireRun(caller, id, approvalOf)
      return watch(await read(), read, signal)
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
