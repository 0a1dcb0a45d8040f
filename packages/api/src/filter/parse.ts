import { FilterError } from './error.ts'
import {
  type DeadLetterFilter,
  FILTER_FIELDS,
  type FilterField,
  type FilterKind,
} from './fields.ts'
import { READERS } from './values.ts'
import { type FilterWord, filterWords, formatFilterWord } from './words.ts'

/**
 * Parses a filter such as `source:orders class:transient after:2h "eu bank"`. Durations such as `2h` are before `now`
 * (epoch ms). Throws a `FilterError` with the position, the reason and the correct form.
 */
export function parseFilter(text: string, now: number): DeadLetterFilter {
  const filter: Record<string, unknown> = {}
  const uses = new Map<FilterField, number>()
  for (const word of filterWords(text)) {
    const field = fieldOf(text, word)
    const count = (uses.get(field) ?? 0) + 1
    if (count > field.most) throw new FilterError(text, word.at, tooMany(field))
    uses.set(field, count)
    const read = READERS[field.kind]({ word, field, now })
    if ('expected' in read)
      throw new FilterError(text, word.valueAt, wrongValue(field, read.expected))
    filter[field.to] = merged(text, word, field, filter[field.to], read.value)
  }
  return filter as DeadLetterFilter
}

/** The kinds whose values are collected in a list, and in an object. */
const LISTS: readonly (keyof DeadLetterFilter)[] = ['sources', 'groups', 'statuses', 'texts']
const PAIRS: readonly FilterKind[] = ['pair', 'json']

function merged(
  text: string,
  word: FilterWord,
  field: FilterField,
  before: unknown,
  value: unknown,
): unknown {
  if (LISTS.includes(field.to)) {
    const list = (before ?? []) as readonly unknown[]
    return list.includes(value) ? list : [...list, value]
  }
  if (!PAIRS.includes(field.kind)) return value
  const [name, one] = value as readonly [string, unknown]
  const pairs = (before ?? {}) as Readonly<Record<string, unknown>>
  if (Object.hasOwn(pairs, name)) {
    throw new FilterError(
      text,
      word.at,
      `"${field.name}" has two values for "${name}". Remove one of them.`,
    )
  }
  // A null prototype, so that a name such as `__proto__` is an ordinary name.
  return Object.assign(Object.create(null), pairs, { [name]: one }) as unknown
}

const TEXT = FILTER_FIELDS.find(({ name }) => name === 'text') as FilterField

function fieldOf(text: string, word: FilterWord): FilterField {
  if (word.field === undefined) return TEXT
  const found = FILTER_FIELDS.find(({ name }) => name === word.field)
  if (found !== undefined) return found
  const near = nearest(word.field)
  const hint =
    near === undefined
      ? `Fields: ${FILTER_FIELDS.map(({ name }) => name).join(', ')}.`
      : `Did you mean "${near.name}", as in ${near.example}?`
  const phrase = formatFilterWord(undefined, `${word.field}:${word.value}`)
  throw new FilterError(
    text,
    word.at,
    `Unknown field "${word.field.slice(0, 80)}". ${hint} To search for this text, use quotes: ${phrase.slice(0, 200)}`,
  )
}

const wrongValue = ({ name, example }: FilterField, expected: string) =>
  `"${name}" expects ${expected}, as in ${example}`

const tooMany = ({ name, most }: FilterField) =>
  most === 1 ? `"${name}" can be used once.` : `"${name}" can be used at most ${most} times.`

/** Returns the field whose name differs in at most two letters, or starts with the text. */
function nearest(name: string): FilterField | undefined {
  const lower = name.slice(0, 40).toLowerCase()
  const [best] = FILTER_FIELDS.map((field) => ({
    field,
    distance: distance(lower, field.name),
  })).toSorted((one, other) => one.distance - other.distance)
  if (best !== undefined && best.distance <= 2) return best.field
  return FILTER_FIELDS.find((field) => lower.length > 1 && field.name.startsWith(lower))
}

/** Returns how many letters must be added, removed or replaced. */
function distance(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, at) => at)
  for (const [at, letter] of Array.from(one).entries()) {
    let previous = at + 1
    const next = [previous]
    for (const [column, wanted] of Array.from(other).entries()) {
      const replaced = (row[column] ?? 0) + (letter === wanted ? 0 : 1)
      previous = Math.min(replaced, previous + 1, (row[column + 1] ?? 0) + 1)
      next.push(previous)
    }
    row = next
  }
  return row.at(-1) ?? 0
}
