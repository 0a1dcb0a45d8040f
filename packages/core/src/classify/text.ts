import { clip } from '../text.ts'
import { attempt, read, readItems, readPath, readString, readText } from './read.ts'

/** Messages travel in broker headers together with up to ten attempts. 500 characters explain the failure and still fit. */
export const MESSAGE_MAX = 500

/**
 * Maximum length of the text in a signature, without bodies. It is longer than the text that travels. The position
 * of a cut depends on the length of the ids, and the part before the cut must not depend on it.
 */
export const SIGNED_MAX = 2000

/** Maximum length of a message that the signature reads. A reason may follow a long payload. */
export const READ_MAX = 16_384

/** The share of the outer error: 240 characters of a message that travels. */
const OUTER_SHARE = 0.48

/** The longest class names in practice have about half of this. */
const TYPE_MAX = 100

/** Enough to recognise the problem of a payload. Logs contain the rest. */
const ISSUES_SHOWN = 3
const KEYS_SHOWN = 8
const PATH_SHOWN = 8

/** Names that every error inherits from its built-in parent; `error` is the name of pg's `DatabaseError`. */
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

/** Returns the most specific type name. A subclass that never set `name` is identified by its constructor. */
export function typeOf(error: unknown): string {
  if (error === null) return 'null'
  if (typeof error !== 'object') return typeof error
  const name = readText(error, 'name')
  if (name !== '' && !INHERITED_NAMES.has(name)) return clip(name, TYPE_MAX)
  const made = readPath(error, ['constructor', 'name'])
  return clip(typeof made === 'string' && made !== '' ? made : name || 'object', TYPE_MAX)
}

/** The text of the thrown error and, when it wraps others, the deepest cause that has a text. */
export interface Chain {
  readonly outer: string
  readonly root: string | undefined
  readonly rootType: string
}

export function chainOf(errors: readonly unknown[]): Chain {
  const [outer = '', ...causes] = errors.map(describe)
  const depth = causes.findLastIndex((text) => text.trim() !== '')
  if (depth === -1) return { outer, root: undefined, rootType: '' }
  return { outer, root: causes[depth], rootType: typeOf(errors[depth + 1]) }
}

/** Joins both texts. The outer text gets half of the space, so that a long one cannot displace its cause. */
export function worded(chain: Chain, max: number): string {
  const outer = clip(chain.outer, max)
  const root = chain.root === undefined ? undefined : clip(chain.root, max)
  if (root === undefined || outer.includes(root)) return outer
  if (outer.trim() === '') return root
  return clip(`${clip(outer, max * OUTER_SHARE)}; caused by ${chain.rootType}: ${root}`, max)
}

/** Returns the text of one value, without its causes. */
export function messageOf(error: unknown): string {
  return worded(chainOf([error]), MESSAGE_MAX)
}

/** Describes one value as bounded text. */
function describe(error: unknown): string {
  if (error === null || (typeof error !== 'object' && typeof error !== 'function')) {
    return clip(String(error), READ_MAX)
  }
  const issues = readIssues(error)
  const message = issues.length > 0 ? describeIssues(issues) : readString(error, 'message')
  return clip(message ?? describeKeys(error), READ_MAX)
}

function describeKeys(value: object): string {
  const keys = attempt(() => Object.keys(value)) ?? []
  const shown = keys.slice(0, KEYS_SHOWN).map((key) => clip(key, TYPE_MAX))
  return `thrown ${typeof value} { ${shown.join(', ')} }`
}

/** Reads issues in the form of Standard Schema. zod, valibot and Redrive's schema errors use it. */
export function readIssues(error: unknown): readonly unknown[] {
  return readItems(read(error, 'issues'), ISSUES_SHOWN).filter(isIssue)
}

function isIssue(value: unknown): boolean {
  const path = read(value, 'path')
  const hasPath = path === undefined || attempt(() => Array.isArray(path)) === true
  return hasPath && readString(value, 'message') !== undefined
}

/** Describes issues. zod's own message is the issues as JSON, which normalises to the same text for every payload. */
function describeIssues(issues: readonly unknown[]): string {
  return issues.map((issue) => `${readString(issue, 'message')}${describePath(issue)}`).join('; ')
}

function describePath(issue: unknown): string {
  const steps = readItems(read(issue, 'path'), PATH_SHOWN).map((step) => read(step, 'key') ?? step)
  return steps.length === 0 ? '' : ` at /${steps.map(describe).join('/')}`
}
