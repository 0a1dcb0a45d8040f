import type { Answer } from '@redrive/api'
import type { DeadLetterQuery, ReplayRun } from '@redrive/catalog'
import { allows } from '../access/allow.ts'
import type { Caller } from '../access/caller.ts'
import { present } from './present.ts'

type Run = Answer<'getReplay'>

/** As the API tells this caller of it. */
export const shownRun = (caller: Caller, run: ReplayRun): Run => ({
  ...run,
  selection: selectionFor(caller, run),
  options: {
    ...run.options,
    ramp: [...run.options.ramp],
    overrides: [...run.options.overrides],
  },
  skipped: { ...run.skipped },
})

/** Instead of a value of a body, for who may not see bodies. */
const HIDDEN = '***'

/** A query has in it what its planner may see: names of sources, and values of bodies. */
function selectionFor(caller: Caller, { selection, source }: ReplayRun): unknown {
  const { query } = selection as { readonly query?: DeadLetterQuery }
  if (query === undefined) return selection
  const { sources, json, extracted, ...rest } = query
  const isHidden = !allows(caller, 'payload', source)
  const values = (all: object | undefined) =>
    all === undefined || !isHidden
      ? all
      : Object.fromEntries(Object.keys(all).map((name) => [name, HIDDEN]))
  return {
    query: {
      ...rest,
      ...present({
        sources: sources?.filter((one) => allows(caller, 'view', one)),
        json: values(json),
        extracted: values(extracted),
      }),
    },
  }
}

export const isOver = ({ state }: Pick<Run, 'state'>): boolean =>
  state === 'done' || state === 'cancelled' || state === 'lapsed'
