import { clip } from '../text.ts'
import { attempt, read, readItems, readPath, readString } from './read.ts'

/** Messages travel in broker headers beside up to ten attempts; 500 characters tell what happened and still fit. */
export const MESSAGE_MAX = 500

/** Half of the room for the thrown error, so that a long one cannot push its cause out of sight. */
const OUTER_MAX = 240

/** The longest class names people write are about half of this. */
const TYPE_MAX = 100

/** Enough to recognise a payload's trouble; the rest belongs to logs. */
const ISSUES_SHOWN = 3
const KEYS_SHOWN = 8
const PATH_SHOWN = 8

/** Names every error has from its built-in parent; `error` is what pg gives its `DatabaseError`. */
const INHERITED_NAMES: ReadonlySet<string> = new Set([
  'Error',
  'TypeError',
  'RangeError',
  'SyntaxError',
  'ReferenceError',
  'URIError',
  'EvalError',
  'AggregateError',
  'error',
])

/** The most telling type name: a subclass that never set `name` is still known by its constructor. */
export function typeOf(error: unknown): string {
  if (error === null) return 'null'
  if (typeof error !== 'object') return typeof error
  const name = readString(error, 'name') ?? ''
  if (name !== '' && !INHERITED_NAMES.has(name)) return clip(name, TYPE_MAX)
  const made = readPath(error, ['constructor', 'name'])
  return clip(typeof made === 'string' && made !== '' ? made : name || 'object', TYPE_MAX)
}

/** The thrown error's message and, when it wraps another, that of the deepest cause that has one. */
export function messageOf(levels: readonly (readonly unknown[])[]): string {
  const [outer = '', ...causes] = levels.map((level) => describe(level[0]))
  const depth = causes.findLastIndex((text) => text.trim() !== '')
  const root = causes[depth]
  if (root === undefined || outer.includes(root)) return clip(outer, MESSAGE_MAX)
  if (outer.trim() === '') return clip(root, MESSAGE_MAX)
  const type = typeOf(levels[depth + 1]?.[0])
  return clip(`${clip(outer, OUTER_MAX)}; caused by ${type}: ${root}`, MESSAGE_MAX)
}

/** One value in words, bounded. */
function describe(error: unknown): string {
  if (error === null || (typeof error !== 'object' && typeof error !== 'function')) {
    return clip(String(error), MESSAGE_MAX)
  }
  const issues = readIssues(error)
  const message = issues.length > 0 ? describeIssues(issues) : readString(error, 'message')
  return clip(message ?? describeKeys(error), MESSAGE_MAX)
}

function describeKeys(value: object): string {
  const keys = attempt(() => Object.keys(value)) ?? []
  const shown = keys.slice(0, KEYS_SHOWN).map((key) => clip(key, TYPE_MAX))
  return `thrown ${typeof value} { ${shown.join(', ')} }`
}

/** Issues as Standard Schema shapes them; zod, valibot and our own schema errors agree on it. */
export function readIssues(error: unknown): readonly unknown[] {
  return readItems(read(error, 'issues'), ISSUES_SHOWN).filter(isIssue)
}

function isIssue(value: unknown): boolean {
  const path = read(value, 'path')
  const hasPath = path === undefined || attempt(() => Array.isArray(path)) === true
  return hasPath && readString(value, 'message') !== undefined
}

/** zod's own message is the issues as JSON, which after normalising looks the same for every payload. */
function describeIssues(issues: readonly unknown[]): string {
  return issues.map((issue) => `${readString(issue, 'message')}${describePath(issue)}`).join('; ')
}

function describePath(issue: unknown): string {
  const steps = readItems(read(issue, 'path'), PATH_SHOWN).map((step) => read(step, 'key') ?? step)
  return steps.length === 0 ? '' : ` at /${steps.map(describe).join('/')}`
}
