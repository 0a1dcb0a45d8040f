import type { Run } from '@redrive/api'
import type { ITEM_STATES } from '@redrive/api/enums'
import type { RunView } from '../address-values.ts'
import type { StateName } from '../components/status.tsx'
import { countText } from './numbers.ts'

/** Returns the number of messages that a run publishes. */
export const sizeOf = ({ counts }: Pick<Run, 'counts'>): number =>
  Object.entries(counts).reduce((sum, [state, n]) => (state === 'skipped' ? sum : sum + n), 0)

/** Returns the title of a run: Repair and replay 1,160 to payments. */
export const runTitle = (run: Pick<Run, 'counts' | 'isChanged' | 'source'>): string =>
  `${run.isChanged ? 'Repair and replay' : 'Replay'} ${countText(sizeOf(run))} to ${run.source}`

const OUTCOMES = [
  ['resolved', 'resolved'],
  ['not_returned', 'not returned'],
  ['failed_again', 'refailed'],
  ['unknown', 'without confirmation'],
  ['published', 'published'],
] as const

/** Whether a plan was cancelled before its approval. It published nothing. */
export const isWithdrawn = ({ state, approvedBy }: Pick<Run, 'state' | 'approvedBy'>): boolean =>
  state === 'cancelled' && approvedBy === undefined

/** Returns the outcomes of a run: 412 resolved, 14 refailed. An outcome without messages is left out. */
export function outcomeText(run: Pick<Run, 'counts' | 'state' | 'approvedBy'>): string {
  if (isWithdrawn(run)) return 'Withdrawn before it started'
  const { counts } = run
  const parts = OUTCOMES.filter(([state]) => counts[state] > 0)
  if (parts.length === 0) return 'No outcome yet'
  return parts.map(([state, word]) => `${countText(counts[state])} ${word}`).join(', ')
}

/** Returns the group that a run replays; undefined if it was selected in another way. */
export function groupOfRun({ selection }: Pick<Run, 'selection'>): string | undefined {
  const { group } = (selection ?? {}) as { readonly group?: unknown }
  return typeof group === 'string' ? group : undefined
}

/** Returns the plan that replaced a withdrawn one: the newest of the same planner with the same selection. */
export function replacementOf(run: Run, planned: readonly Run[]): Run | undefined {
  if (!isWithdrawn(run)) return undefined
  const selection = JSON.stringify(run.selection)
  return planned
    .filter(
      (one) =>
        one.state === 'planned' &&
        one.source === run.source &&
        one.plannedBy === run.plannedBy &&
        one.plannedAt > run.plannedAt &&
        JSON.stringify(one.selection) === selection,
    )
    .toSorted((one, other) => other.plannedAt - one.plannedAt)[0]
}

/** Returns the runs that ended last. Withdrawn plans are left out: each update of a plan leaves one. */
export const lastEnded = (runs: readonly Run[], most: number): readonly Run[] =>
  runs
    .filter((run) => run.endedAt !== undefined && !isWithdrawn(run))
    .toSorted((one, other) => (other.endedAt ?? 0) - (one.endedAt ?? 0))
    .slice(0, most)

const ITEM_WORDS: Readonly<Record<ItemState, string>> = {
  planned: 'Planned',
  skipped: 'Skipped',
  queued: 'Queued',
  claimed: 'Queued',
  publishing: 'Being published',
  published: 'Published, no outcome yet',
  resolved: 'Resolved',
  failed_again: 'Refailed',
  unknown: 'No confirmation',
  not_returned: 'Not returned',
  expired: 'Expired',
  cancelled: 'Cancelled',
}
export type ItemState = (typeof ITEM_STATES)[number]

/** Returns the state of one message in a run. */
export const itemText = (state: ItemState): string => ITEM_WORDS[state]

/** Returns the status that shows the state of a message in a run. */
export const itemStatus = (state: ItemState): StateName =>
  state === 'claimed' || state === 'publishing' ? 'queued' : state

/** Whether a run is in a view. */
export function inView(run: Run, view: RunView, person: string): boolean {
  const views: Readonly<Record<RunView, boolean>> = {
    all: true,
    active: run.state === 'running' || run.state === 'paused',
    planned: run.state === 'planned',
    unconfirmed: run.counts.unknown > 0,
    mine: run.plannedBy === person,
  }
  return views[view]
}

/** Returns the section of the list of runs. */
export function sectionOf({ state }: Pick<Run, 'state'>): 'Active' | 'Awaiting approval' | 'Ended' {
  if (state === 'running' || state === 'paused') return 'Active'
  return state === 'planned' ? 'Awaiting approval' : 'Ended'
}
