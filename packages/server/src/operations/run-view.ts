import type { Output } from '@redrive/api'
import type { DeadLetterQuery, ReplayRun } from '@redrive/catalog'
import { allows } from '../access/allow.ts'
import type { Caller } from '../access/caller.ts'
import type { Reading } from '../reading/reading.ts'
import { comparesHidden } from './masked-values.ts'
import { omitUndefined } from './present.ts'

type Run = Output<'getReplay'>

/** Returns a run as this caller can see it. */
export const runView = (reading: Reading, caller: Caller, run: ReplayRun): Run => ({
  ...run,
  selection: selectionFor(reading, caller, run),
  options: {
    ...run.options,
    canary: [...run.options.canary],
    overrides: [...run.options.overrides],
  },
  skipped: { ...run.skipped },
  // The error of a broker can contain the routing key or subject of a message.
  ...omitUndefined({ pauseReason: run.pauseReason && reading.text(run.pauseReason) }),
})

/** Replaces values that the caller may not see. */
const HIDDEN = '***'

type Values = Readonly<Record<string, unknown>> | undefined

/** Returns the selection without source names and values of messages that only the planner can see. */
function selectionFor(reading: Reading, caller: Caller, { selection, source }: ReplayRun): unknown {
  const { query } = selection as { readonly query?: DeadLetterQuery }
  if (query === undefined) return selection
  const { sources, json, extracted, headers, texts, key, lane, ...rest } = query
  const seesPayload = allows(caller, 'view_payload', source)
  const seesAll = allows(caller, 'view_unmasked', source)
  const text = (value: string | undefined) =>
    value === undefined || seesAll ? value : reading.text(value)
  const shown = (all: Values, isVisible: (name: string, value: unknown) => boolean) =>
    all &&
    Object.fromEntries(
      Object.entries(all).map(([name, value]) => {
        if (!seesAll && !isVisible(name, value)) return [name, HIDDEN]
        return [name, typeof value === 'string' ? text(value) : value]
      }),
    )
  const isMasked = (name: string) => comparesHidden(reading, source, { json: { [name]: 0 } })
  return {
    query: {
      ...rest,
      ...omitUndefined({
        sources: sources?.filter((one) => allows(caller, 'view', one)),
        json: shown(json, (name) => seesPayload && !isMasked(name)),
        extracted: shown(extracted, () => seesPayload),
        headers: shown(headers, (name, value) => !reading.hidesHeader(source, name, value)),
        texts: texts?.map((one) => text(one)),
        key: text(key),
        lane: text(lane),
      }),
    },
  }
}

export const isOver = ({ state }: Pick<Run, 'state'>): boolean =>
  state === 'done' || state === 'cancelled' || state === 'plan_expired'
