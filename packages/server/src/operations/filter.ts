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

/** Parses the filter of a selection. The purpose of the selection sets the status. */
export function readSelectionFilter(text: string): DeadLetterFilter {
  const filter = readFilter(text)
  if (filter.statuses !== undefined) throw invalid(STATUS)
  return filter
}

const SPLIT_FIELDS = ['class', 'code', 'type', 'handler', 'headers', 'texts'] as const
type SplitField = (typeof SPLIT_FIELDS)[number]

/** Parses the filter of a split. Later dead letters must be compared in the same way, so times and states cannot be used. */
export function readSplitFilter(text: string): Pick<DeadLetterFilter, SplitField> {
  const filter = parsed(text)
  const others = Object.keys(filter).filter((name) => !SPLIT_FIELDS.includes(name as SplitField))
  if (others.length > 0) throw invalid(`${SPLIT} The filter also has ${others.join(', ')}.`)
  if (Object.keys(filter).length === 0) throw invalid(SPLIT)
  return filter
}

const SPLIT =
  'The filter of a split needs one or more of class, code, type, handler, header and text, and no other field.'

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
