import {
  FILTER_FIELDS,
  FilterError,
  formatFilterWord,
  isBoundedFilter,
  parseFilter,
} from '@redrive/api/filter'
import type { MessageRange } from '../address-values.ts'
import { wordTexts } from './filter-words.ts'

export interface MessageFilter {
  /** The filter that the server applies. Undefined when the text cannot be read. */
  readonly filter?: string
  /** Whether the range of the page was added, because the filter has no bound. */
  readonly isRanged: boolean
  readonly problem?: string
}

/** Returns the filter that the server applies: the words of the user, and the range if they need a bound. */
export function messageFilter(words: string, range: MessageRange, now: number): MessageFilter {
  try {
    const isRanged = !isBoundedFilter(parseFilter(words, now))
    const bound = isRanged ? [formatFilterWord('after', range)] : []
    return { filter: [...textOf(words), ...bound].join(' '), isRanged }
  } catch (error) {
    if (error instanceof FilterError) return { isRanged: false, problem: error.message }
    throw error
  }
}

const textOf = (words: string) => (words.trim() === '' ? [] : [words.trim()])

/**
 * Returns the filter without messages that fail after `at`, so that a selection does not grow. A word `before` of the user
 * is kept if it is earlier.
 */
export function frozenFilter(filter: string, at: number): string {
  const times = parseFilter(filter, at)
  const words = wordTexts(filter)
    .filter(({ field }) => field !== 'before')
    .map(({ field, text }) => {
      const to = TIME_FIELDS.get(field ?? '')
      const time = to === undefined ? undefined : times[to]
      return typeof time === 'number' ? timeWord(field, time) : text
    })
  return [...words, timeWord('before', Math.min(times.before ?? at, at))].join(' ')
}

/** A duration such as 24h would mean another time later, so every time is absolute. */
const timeWord = (field: string | undefined, time: number) =>
  formatFilterWord(field, new Date(time).toISOString())

const TIME_FIELDS = new Map(
  FILTER_FIELDS.filter(({ kind }) => kind === 'time').map(({ name, to }) => [name, to]),
)

/** The keys of the filter, with values to complete. `values` come from the loaded rows. */
export const messageFilterKeys = (values: Readonly<Record<string, readonly string[]>>) =>
  FILTER_FIELDS.map(({ name, description, choices, example }) => ({
    name,
    description: `${description} ${example}`,
    values: choices ?? [...new Set(values[name] ?? [])],
  }))
