import type { Output } from '@redrive/api'
import type { DeadLetterQuery, ReplayRun } from '@redrive/catalog'
import { allows } from '../access/allow.ts'
import type { Caller } from '../access/caller.ts'
import { omitUndefined } from './present.ts'

type Run = Output<'getReplay'>

/** Returns a run as this caller can see it. */
export const runView = (caller: Caller, run: ReplayRun): Run => ({
  ...run,
  selection: selectionFor(caller, run),
  options: {
    ...run.options,
    canary: [...run.options.canary],
    overrides: [...run.options.overrides],
  },
  skipped: { ...run.skipped },
})

/** Replaces values of payloads for callers without permission "view_payload". */
const HIDDEN = '***'

/** Returns the selection without source names and payload values that only the planner can see. */
function selectionFor(caller: Caller, { selection, source }: ReplayRun): unknown {
  const { query } = selection as { readonly query?: DeadLetterQuery }
  if (query === undefined) return selection
  const { sources, json, extracted, ...rest } = query
  const isHidden = !allows(caller, 'view_payload', source)
  const values = (all: object | undefined) =>
    all === undefined || !isHidden
      ? all
      : Object.fromEntries(Object.keys(all).map((name) => [name, HIDDEN]))
  return {
    query: {
      ...rest,
      ...omitUndefined({
        sources: sources?.filter((one) => allows(caller, 'view', one)),
        json: values(json),
        extracted: values(extracted),
      }),
    },
  }
}

export const isOver = ({ state }: Pick<Run, 'state'>): boolean =>
  state === 'done' || state === 'cancelled' || state === 'plan_expired'
