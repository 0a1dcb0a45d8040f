import {
  type DeadLetterFilter,
  FILTER_FIELDS,
  FilterError,
  isBoundedFilter,
  parseFilter,
} from '@redrive/api/filter'
import { ProblemError } from '../access/problem-error.ts'

/** Parses the filter of a request. Rejects an invalid or unbounded one with the correct form. */
export function readFilter(text: string): DeadLetterFilter {
  const filter = parsed(text)
  if (!isBoundedFilter(filter)) throw invalid(UNBOUNDED)
  return filter
}

/** Parses the filter of a selection. What is selected decides about the status. */
export function readSelectionFilter(text: string): DeadLetterFilter {
  const filter = readFilter(text)
  if (filter.statuses !== undefined) throw invalid(STATUS)
  return filter
}

function parsed(text: string): DeadLetterFilter {
  try {
    return parseFilter(text, Date.now())
  } catch (error) {
    throw error instanceof FilterError ? invalid(error.message) : error
  }
}

const BOUNDS = FILTER_FIELDS.filter(({ isBound }) => isBound).map(({ name }) => name)
const UNBOUNDED = `The filter needs one of ${BOUNDS.join(', ')}, because a search over all dead letters takes too long. For all dead letters, add after:0.`
const STATUS =
  'Remove "status" from the filter: a plan and a discard select open dead letters, a restore selects discarded ones.'

const invalid = (problem: string) =>
  new ProblemError('invalid', problem, { problems: [`filter: ${problem}`] })
