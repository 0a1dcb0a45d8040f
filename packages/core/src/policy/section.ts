import { formatDuration, parseDuration } from '../duration.ts'
import { RedriveError } from '../errors.ts'
import { isRecord, shown } from '../text.ts'

/** A reader of one options object. It reads field by field and collects all problems. */
export interface Section {
  duration(key: string, fallback: number, bounds?: Bounds): number
  integer(key: string, fallback: number, bounds: Bounds): number
  number(key: string, fallback: number, bounds: Bounds): number
  choice<T extends string>(key: string, fallback: T, allowed: readonly T[]): T
  boolean(key: string, fallback: boolean): boolean
  /** Reads a value that must be given. */
  required<T>(key: string, check: Check): T
  /** Reads a value that may be left out; returns undefined then. */
  ifGiven<T>(key: string, check: Check): T | undefined
  raw(key: string): unknown
  /** Reads an object. With a second argument, it reads that one instead, such as one with defaults added. */
  section(key: string, replacement?: unknown): Section
  /** Reads a section that may also be the word `'off'`; returns undefined then. */
  optional(key: string): Section | undefined
  problem(key: string, sentence: string): void
  /** Reports every key that was not read: it is a typing mistake. */
  end(): void
}

export interface Bounds {
  readonly min: number
  readonly max: number
}

/** The condition of a value that is neither a number, a duration nor a choice. */
export interface Check {
  readonly isValid: (value: unknown) => boolean
  /** Completes the sentence "expected …". */
  readonly expected: string
  /** True when the value may contain a password. A problem then describes it without its text. */
  readonly isSecret?: boolean
  /** The environment variables that usually contain the value. A problem of an unset value names them. */
  readonly variables?: readonly string[]
}

/** A year: longer than any useful wait. */
const ANY_DURATION: Bounds = { min: 0, max: 366 * 86_400_000 }

export function readSection(path: string, input: unknown, problems: string[]): Section {
  const fields = isRecord(input) ? input : {}
  if (input !== undefined && !isRecord(input))
    problems.push(`${path || 'options'}: expected an object, got ${shown(input)}`)
  const known = new Set<string>()
  const at = (key: string) => (path === '' ? key : `${path}.${key}`)

  function take(key: string): unknown {
    known.add(key)
    // Options may be an instance of a class. What every object inherits is not an option.
    return Object.hasOwn(fields, key) || !(key in Object.prototype) ? fields[key] : undefined
  }

  function within<T>(
    key: string,
    value: unknown,
    parsed: T | undefined,
    fallback: T,
    expected: string,
  ): T {
    if (value === undefined) return fallback
    if (parsed !== undefined) return parsed
    problems.push(`${at(key)}: expected ${expected}, got ${shown(value)}`)
    return fallback
  }

  function numeric(key: string, fallback: number, { min, max }: Bounds, whole: boolean): number {
    const value = take(key)
    const fits =
      typeof value === 'number' &&
      value >= min &&
      value <= max &&
      (!whole || Number.isInteger(value))
    const expected = `a ${whole ? 'whole ' : ''}number from ${min} to ${max}`
    return within(key, value, fits ? value : undefined, fallback, expected)
  }

  function check(key: string, value: unknown, { isValid, ...described }: Check): void {
    if (isValid(value)) return
    const isMissing = value === undefined && !(key in fields)
    problems.push(`${at(key)}: ${mismatch(value, isMissing, described)}`)
  }

  return {
    duration(key, fallback, { min, max } = ANY_DURATION) {
      const value = take(key)
      const ms = parseDuration(value)
      const parsed = ms !== undefined && ms >= min && ms <= max ? ms : undefined
      const expected = `a duration from ${formatDuration(min)} to ${formatDuration(max)} such as '250ms', '5s' or '2m'`
      return within(key, value, parsed, fallback, expected)
    },
    integer: (key, fallback, bounds) => numeric(key, fallback, bounds, true),
    number: (key, fallback, bounds) => numeric(key, fallback, bounds, false),
    choice(key, fallback, allowed) {
      const value = take(key)
      const parsed = allowed.find((one) => one === value)
      return within(key, value, parsed, fallback, allowed.map((one) => `'${one}'`).join(' or '))
    },
    boolean(key, fallback) {
      const value = take(key)
      const parsed = typeof value === 'boolean' ? value : undefined
      return within(key, value, parsed, fallback, 'true or false')
    },
    required<T>(key: string, condition: Check) {
      const value = take(key)
      check(key, value, condition)
      return value as T
    },
    ifGiven<T>(key: string, condition: Check) {
      const value = take(key)
      if (value !== undefined) check(key, value, condition)
      return value as T | undefined
    },
    raw: take,
    section(key, replacement) {
      const value = take(key)
      return readSection(at(key), replacement ?? value, problems)
    },
    optional(key) {
      const value = take(key)
      if (value === 'off') return undefined
      if (value !== undefined && !isRecord(value)) {
        problems.push(`${at(key)}: expected an object or 'off', got ${shown(value)}`)
        return readSection(at(key), undefined, problems)
      }
      return readSection(at(key), value, problems)
    },
    problem: (key, sentence) => void problems.push(`${at(key)}: ${sentence}`),
    end() {
      for (const key of Object.keys(fields)) {
        if (!known.has(key))
          problems.push(
            `${at(key)}: unknown option; known options: ${[...known].sort().join(', ')}`,
          )
      }
    },
  }
}

/** Describes a value that is not as expected. */
function mismatch(
  value: unknown,
  isMissing: boolean,
  { expected, isSecret = false, variables = [] }: Omit<Check, 'isValid'>,
): string {
  const isHidden = isSecret && typeof value === 'string' && value !== ''
  const given = isMissing ? 'nothing' : isHidden ? 'another text' : shown(value)
  const isUnset = !isMissing && (Array.isArray(value) ? value : [value]).some(isEmpty)
  const hint =
    isUnset && variables.length > 0
      ? `; probably the environment variable ${variables.join(' or ')} is not set`
      : ''
  return `expected ${expected}, got ${given}${hint}`
}

const isEmpty = (value: unknown) => value === undefined || value === ''

/**
 * Reads the options of a call. Throws one `POLICY_INVALID` error that lists every problem. `read` takes each
 * option from the section; it must not use a value before it has checked it.
 */
export function readOptions<T>(call: string, input: unknown, read: (options: Section) => T): T {
  const problems: string[] = []
  const options = readSection('', input, problems)
  const result = read(options)
  options.end()
  if (problems.length === 0) return result
  const message = `The options of ${call} are invalid:\n- ${problems.join('\n- ')}`
  throw new RedriveError('POLICY_INVALID', message, { problems })
}

/** The condition of a name: text that is not empty. */
export const named = (expected: string): Check => ({
  isValid: (value) => typeof value === 'string' && value !== '',
  expected,
})

/** The condition of a function. */
export const FUNCTION: Check = {
  isValid: (value) => typeof value === 'function',
  expected: 'a function',
}

/** The condition of an object with these methods. */
export const withMethods = (expected: string, methods: readonly string[]): Check => ({
  // Some loggers are functions with methods.
  isValid: (value) =>
    (isRecord(value) || typeof value === 'function') &&
    methods.every((method) => typeof (value as Record<string, unknown>)[method] === 'function'),
  expected,
})

const PLACEHOLDER = /\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}/g

/** 32 levels: no policy is that deep, and circular data must not cause an endless loop. */
const DEEPEST = 32

type Env = Readonly<Record<string, string | undefined>>

/**
 * Replaces `${NAME}` and `${NAME:-default}` in every string of a configuration. The default also
 * replaces an empty value. A text that is exactly one placeholder becomes a number or a boolean when its
 * value reads as one. A configuration file has no other way to write it.
 */
export function fillPlaceholders(
  value: unknown,
  env: Env,
  problems: string[],
  path: readonly string[] = [],
): unknown {
  if (typeof value === 'string') return fillText(value, env, problems, path)
  if (!Array.isArray(value) && !isPlainObject(value)) return value
  if (path.length > DEEPEST) {
    problems.push(`${path.slice(0, 3).join('.')}…: nested deeper than ${DEEPEST} levels`)
    return undefined
  }
  const fill = (key: string, one: unknown) => fillPlaceholders(one, env, problems, [...path, key])
  if (Array.isArray(value)) return value.map((one, index) => fill(String(index), one))
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, fill(key, one)]))
}

function isPlainObject(value: unknown): value is Readonly<Record<string, unknown>> {
  if (!isRecord(value)) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}

function fillText(text: string, env: Env, problems: string[], path: readonly string[]): unknown {
  let isMissing = false
  const filled = text.replace(PLACEHOLDER, (_, name: string, fallback: string | undefined) => {
    const found = (Object.hasOwn(env, name) ? env[name] : undefined) || fallback
    if (found !== undefined) return found
    isMissing = true
    problems.push(
      `${path.join('.')}: environment variable "${name}" is not set; set it or add a default (\${${name}:-…})`,
    )
    return ''
  })
  if (isMissing) return undefined
  return /^\$\{[^}]*\}$/.test(text) ? scalar(filled) : filled
}

function scalar(text: string): string | number | boolean {
  if (text === 'true' || text === 'false') return text === 'true'
  return /^-?\d+(\.\d+)?$/.test(text) ? Number(text) : text
}
