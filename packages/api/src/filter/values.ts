import type { FilterField, FilterKind } from './fields.ts'
import type { FilterWord } from './words.ts'

interface Reading {
  readonly word: FilterWord
  readonly field: FilterField
  /** Epoch ms. */
  readonly now: number
}

/** The value of a word, or a description of what was expected. */
type ReadValue = { readonly value: unknown } | { readonly expected: string }

/** 512 characters: the maximum length of a stored name. */
const NAME_MAX = 512
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/** Reads the value of each kind of field. */
export const READERS: Readonly<Record<FilterKind, (reading: Reading) => ReadValue>> = {
  name: ({ word }) => nameOf(word.value),
  text: ({ word }) => nameOf(word.value),
  id: ({ word: { value } }) =>
    UUID.test(value.toLowerCase()) ? { value: value.toLowerCase() } : { expected: 'a full id' },
  choice: ({ word: { value }, field: { choices = [] } }) =>
    choices.includes(value) ? { value } : { expected: `one of ${choices.join(', ')}` },
  yesno: ({ word: { value } }) =>
    ['yes', 'no'].includes(value) ? { value: value === 'yes' } : { expected: 'yes or no' },
  time: ({ word: { value }, now }) => timeOf(value, now),
  range: ({ word: { value } }) => rangeOf(value),
  pair: ({ word }) => pairOf(word),
  json: ({ word }) => jsonOf(word),
}

function nameOf(value: string): ReadValue {
  const isValid =
    value !== '' && value.length <= NAME_MAX && value.isWellFormed() && !value.includes('\0')
  return isValid ? { value } : { expected: `1 to ${NAME_MAX} characters` }
}

const UNIT_MS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
}
const DURATION = /^(\d{1,9}(?:\.\d{1,9})?)(ms|s|m|h|d)$/
/** A date, with a time of day if given. Without a zone it is UTC, so that every reader gets the same time. */
const DATE = /^(\d{4}-\d{2}-\d{2})(?:T(\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?)(Z|[+-]\d{2}:\d{2})?)?$/
const EPOCH_MS = /^\d{1,15}$/

function timeOf(value: string, now: number): ReadValue {
  const [, amount, unit = ''] = DURATION.exec(value) ?? []
  if (amount !== undefined)
    return { value: Math.round(now - Number(amount) * (UNIT_MS[unit] ?? 0)) }
  if (EPOCH_MS.test(value)) return { value: Number(value) }
  const [, day, time = '00:00', zone = 'Z'] = DATE.exec(value) ?? []
  const at = day === undefined ? Number.NaN : Date.parse(`${day}T${time}${zone}`)
  return Number.isNaN(at)
    ? { expected: 'how long ago (2h), a time (2026-01-31T10:00:00Z) or epoch milliseconds' }
    : { value: at }
}

/** The largest number of attempts that the catalog stores. */
const COUNT_MAX = 2 ** 31 - 1

function rangeOf(value: string): ReadValue {
  const [, from = '', dots, to = ''] = /^(\d{0,10})(\.\.)?(\d{0,10})$/.exec(value) ?? []
  const isOne = dots === undefined
  const first = from === '' ? undefined : Number(from)
  const last = isOne ? first : to === '' ? undefined : Number(to)
  const isValid =
    (first ?? last) !== undefined &&
    (first ?? 0) <= (last ?? COUNT_MAX) &&
    (last ?? first ?? 0) <= COUNT_MAX
  if (!isValid) return { expected: 'a number or a range: 5, 5.., ..5 or 3..5' }
  return {
    value: {
      ...(first === undefined ? {} : { from: first }),
      ...(last === undefined ? {} : { to: last }),
    },
  }
}

const PAIR: ReadValue = { expected: 'name=value' }

function pairOf({ value }: FilterWord): ReadValue {
  const at = value.indexOf('=')
  const [name, one] = [value.slice(0, at), value.slice(at + 1)]
  if (at < 1 || one.length > NAME_MAX || one.includes('\0')) return PAIR
  return 'expected' in nameOf(name) ? PAIR : { value: [name, one] }
}

function jsonOf(word: FilterWord): ReadValue {
  const pair = pairOf(word)
  const isPointer =
    word.value.startsWith('/') && !/~(?![01])/.test(word.value.split('=', 1)[0] ?? '')
  if ('expected' in pair || !isPointer) return { expected: '/pointer=value' }
  const [pointer, text] = pair.value as readonly [string, string]
  const isQuoted = word.quotes.includes(pointer.length + 1)
  return { value: [pointer, isQuoted ? text : scalarOf(text)] }
}

/** Returns the JSON scalar, or else the text: users write `status=open` instead of `status="open"`. */
function scalarOf(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text)
    const isScalar =
      value === null || Number.isFinite(value) || ['string', 'boolean'].includes(typeof value)
    return isScalar ? value : text
  } catch {
    return text
  }
}
