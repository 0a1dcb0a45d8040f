import type { Action, Answer } from '@redrive/api'
import type { ReplayRun } from '@redrive/catalog'
import type { Caller } from '../access/caller.ts'
import { notFound } from './guard.ts'
import type { Handlers } from './handlers.ts'
import type { DeskParts } from './parts.ts'
import { plan } from './plan.ts'
import { present } from './present.ts'
import { shownRun } from './run.ts'
import { runChange } from './run-change.ts'
import { narrowed } from './sources.ts'
import { watch } from './watch.ts'

type Changing = 'approveReplay' | 'pauseReplay' | 'resumeReplay' | 'cancelReplay'
type Reading =
  | 'planReplay'
  | 'listReplays'
  | 'getReplay'
  | 'getReplayChange'
  | 'watchReplay'
  | 'listReplayItems'

export function replays(parts: DeskParts): Handlers<Changing | Reading> {
  const { catalog, guard } = parts
  const runs = catalog.replays
  const must = async (caller: Caller, id: string) => {
    const found = await runs.run(id)
    if (found === undefined) throw notFound('run')
    return shownRun(caller, found)
  }
  /** Checks, writes down and does something with one run. */
  const change = async (
    deed: { readonly caller: Caller; readonly what: Changing; readonly subject: string },
    action: Action,
    work: (by: { readonly by: string }) => Promise<ReplayRun>,
    facts: Readonly<Record<string, unknown>> = {},
  ): Promise<Answer<Changing>> => {
    const source = await guard.sourceOf(deed, 'run', deed.subject, action)
    const by = { by: deed.caller.person }
    const run = await guard.mutate({ ...deed, source, facts }, () => work(by))
    return shownRun(deed.caller, run)
  }
  return {
    ...plan(parts),
    ...runChange(parts),

    async listReplays(caller, { query = {} }) {
      const { source, ...rest } = present(query)
      const sources = await narrowed(catalog, caller, source === undefined ? undefined : [source])
      if (sources?.length === 0) return { runs: [] }
      const page = await runs.runs({ ...rest, ...present({ sources }) })
      return { runs: page.runs.map((run) => shownRun(caller, run)), next: page.next }
    },

    async getReplay(caller, { params: { id } }) {
      await guard.sourceOf({ caller, what: 'getReplay' }, 'run', id)
      return must(caller, id)
    },

    async watchReplay(caller, { params: { id } }, { signal }) {
      await guard.sourceOf({ caller, what: 'watchReplay' }, 'run', id)
      return watch(await must(caller, id), () => must(caller, id), signal)
    },

    async listReplayItems(caller, { params: { id }, query = {} }) {
      await guard.sourceOf({ caller, what: 'listReplayItems' }, 'run', id)
      return { items: [...(await runs.items({ ...present(query), run: id }))] }
    },

    async approveReplay(caller, { params: { id: subject }, body: { hash } }) {
      const work = (by: { readonly by: string }) => runs.approve(subject, { hash, ...by })
      return change({ caller, what: 'approveReplay', subject }, 'approve', work, { hash })
    },

    async pauseReplay(caller, { params: { id: subject } }) {
      return change({ caller, what: 'pauseReplay', subject }, 'replay', (by) =>
        runs.pause(subject, by),
      )
    },

    async resumeReplay(caller, { params: { id: subject } }) {
      return change({ caller, what: 'resumeReplay', subject }, 'replay', (by) =>
        runs.resume(subject, by),
      )
    },

    async cancelReplay(caller, { params: { id: subject } }) {
      return change({ caller, what: 'cancelReplay', subject }, 'replay', (by) =>
        runs.cancel(subject, by),
      )
    },
  }
}
