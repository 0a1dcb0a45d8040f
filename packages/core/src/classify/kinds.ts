import { kindOf, kindsOfText } from '../grouping/body.ts'
import { clip } from '../text.ts'
import { hasAny, type Names } from './names.ts'
import { firstNames, isA, read, readItems, readPath } from './read.ts'
import { READ_MAX } from './text.ts'

/** Properties of errors whose value names the kind: of databases, payment services, mail services and validators. */
const PROPERTIES: readonly string[] = [
  'code',
  'errorCode',
  'error_code',
  'reason',
  'decline_code',
  'declineCode',
  'refusalReason',
  'subcode',
  'error_subcode',
  'errorNum',
  'responseCode',
  'sqlState',
  'constraint',
  'column',
  'param',
  'field',
  'keyword',
  'rule',
  'errorType',
]

/** Properties that may also be part of the domain. Their value must look like a code. */
const WEAK_PROPERTIES: readonly string[] = ['type', 'kind', 'category']

/** Where HTTP clients and SDKs keep the body of a response that explains the failure. */
const BODIES: readonly (readonly string[])[] = [
  ['response', 'data'],
  ['response', 'body'],
  ['response'],
  ['responseBody'],
  ['body'],
  ['data'],
  ['error'],
  ['errors'],
  ['details'],
  ['raw'],
]

/** An error that names its kind has one of these. */
const KIND_NAMES: readonly string[] = [...PROPERTIES, ...WEAK_PROPERTIES, ...firstNames(BODIES)]

/** Keys that are read in a body. */
const BODY_KEYS: readonly string[] = [
  ...['code', 'errorCode', 'error_code', 'type', 'reason', 'issue', 'error', 'status', 'name'],
  ...['field', 'param', 'path', 'title', 'message', 'detail', 'description', 'error_description'],
]

/** Keys of a body that contain further errors. */
const NESTED: readonly string[] = ['error', 'errors', 'details', 'issues', 'fault']

const NESTING_MAX = 3
const ITEMS_MAX = 3
/** The signature reads no more. One error has few kinds. */
const KINDS_MAX = 12
/** A longer value is not a name. */
const VALUE_MAX = 200

/** Returns the values of an error's properties that name its kind, such as `reason: insufficient_funds`, without its code. */
export function kindsOf(error: unknown, names: Names, code: string | undefined): readonly string[] {
  if (typeof error !== 'object' || error === null || !hasAny(names, KIND_NAMES)) return []
  const own = PROPERTIES.flatMap((key) => {
    const value = names.has(key) ? textOf(read(error, key)) : undefined
    return value === undefined || value === code ? [] : [`${key}: ${value}`]
  })
  const weak = WEAK_PROPERTIES.flatMap((key) =>
    names.has(key) ? (kindOf(key, textOf(read(error, key)) ?? '') ?? []) : [],
  )
  const bodies = BODIES.flatMap((path) =>
    names.has(path[0] ?? '') ? kindsOfBody(readPath(error, path), 0) : [],
  )
  return [...new Set([...own, ...weak, ...bodies])].slice(0, KINDS_MAX)
}

/** Returns a short text or a whole number. Others do not name a kind. */
function textOf(value: unknown): string | undefined {
  if (typeof value === 'number' && Number.isInteger(value)) return String(value)
  if (typeof value !== 'string' || value === '' || value.length > VALUE_MAX) return undefined
  return value
}

function kindsOfBody(body: unknown, depth: number): readonly string[] {
  if (typeof body === 'string')
    return /^\s{0,9}[[{]/.test(body) ? kindsOfText(clip(body, READ_MAX)) : []
  // Members of an AggregateError are causes, which have their own text.
  if (typeof body !== 'object' || body === null || depth > NESTING_MAX || isA(body, Error))
    return []
  const items = readItems(body, ITEMS_MAX)
  if (items.length > 0) return items.flatMap((item) => kindsOfBody(item, depth + 1))
  const own = BODY_KEYS.flatMap((key) => kindOf(key, valueOf(read(body, key))) ?? [])
  return [...own, ...NESTED.flatMap((key) => kindsOfBody(read(body, key), depth + 1))]
}

function valueOf(value: unknown): string {
  const steps = readItems(value, ITEMS_MAX * 3).filter((step) => typeof step === 'string')
  return steps.length > 0 ? steps.join('/') : (textOf(value) ?? '')
}
