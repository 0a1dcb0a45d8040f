import { formatDuration, parseDuration } from '../duration.ts'
import { isRecord, shown } from '../text.ts'

/** A reader of one options object. It reads field by field and collects all problems. */
export interface Section {
  duration(key: string, fallback: number, bounds?: Bounds): number
  integer(key: string, fallback: number, bounds: Bounds): number
  number(key: string, fallback: number, bounds: Bounds): number
  choice<T extends string>(key: string, fallback: T, allowed: readonly T[]): T
  raw(key: string): unknown
  section(key: string): Section
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
    return Object.hasOwn(fields, key) ? fields[key] : undefined
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
    raw: take,
    section: (key) => readSection(at(key), take(key), problems),
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
