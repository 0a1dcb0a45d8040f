import type { Run } from '@redrive/api'
import { fieldsOf, type PlanFields } from '../words/plan.ts'
import { keep, kept } from './kept.ts'
import type { PlanRequest } from './runs.ts'

/** Name of the idempotency key of a plan that was requested and is not shown yet. */
export const planKeyName = (selection: PlanRequest['selection']): string =>
  `key-${JSON.stringify(selection)}`

/** How a plan was made in this tab, so that it can be made again with other fields. */
export interface PlanOrigin {
  readonly selection: PlanRequest['selection']
  readonly fields: PlanFields
}

export const keepMade = (id: string, made: PlanOrigin): void => keep(`made-${id}`, made)

/** Returns how a plan was made. A plan of another tab is known only if it is of a group or of ids, and unchanged. */
export function madeOf(run: Run): PlanOrigin | undefined {
  const found = kept(`made-${run.id}`)
  if (typeof found === 'object' && found !== null) return found as PlanOrigin
  const selection = run.selection as Partial<Record<'group' | 'ids' | 'query', unknown>> | undefined
  if (run.isChanged || selection === undefined || selection.query !== undefined) return undefined
  return { selection: selection as PlanOrigin['selection'], fields: fieldsOf(run) }
}

/** The fields that the user has typed and not planned yet. */
export const keepDraft = (id: string, fields: PlanFields): void => keep(`draft-${id}`, fields)

/** Takes what was typed for a plan to the plan that replaced it, for example in another tab. */
export function moveDraft(from: string, to: string): void {
  const draft = draftOf(from)
  if (draft !== undefined && draftOf(to) === undefined) keepDraft(to, draft)
}

export const draftOf = (id: string): PlanFields | undefined =>
  kept(`draft-${id}`) as PlanFields | undefined
