import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'

/** The position of a value in the config. */
export type Path = readonly (string | number)[]

export interface Problem {
  readonly path: Path
  readonly text: string
}

export interface Surroundings {
  readonly env: Readonly<Record<string, string | undefined>>
  /** Base directory of relative paths in `NAME_FILE`. */
  readonly cwd: string
}

export interface FilledConfig {
  readonly value: unknown
  readonly problems: readonly Problem[]
}

/** Matches placeholders, and `$${`, the escape for a literal `${` (for example in a password). */
const PLACEHOLDER = /\$\$\{|\$\{([A-Za-z_]\w*)(?::-([^}]*))?\}/g

/** Replaces `${NAME}` and `${NAME:-default}` in every text. Returns a problem for each missing value. */
export function fillPlaceholders(value: unknown, surroundings: Surroundings): FilledConfig {
  const problems: Problem[] = []
  const fill = (one: unknown, path: Path): unknown => {
    if (typeof one === 'string') return fillText(one, path)
    if (Array.isArray(one)) return one.map((item, at) => fill(item, [...path, at]))
    if (!isPlain(one)) return one
    return Object.fromEntries(
      Object.entries(one).map(([name, item]) => [name, fill(item, [...path, name])]),
    )
  }
  const fillText = (text: string, path: Path) =>
    text.replace(PLACEHOLDER, (whole, name: string | undefined, fallback: string | undefined) => {
      if (name === undefined) return '${'
      const found = lookUp(name, surroundings)
      if ('value' in found) return found.value
      if (found.problem === undefined && fallback !== undefined) return fallback
      problems.push({ path, text: found.problem ?? notSet(name) })
      return whole
    })
  return { value: fill(value, []), problems }
}

export const notSet = (name: string): string =>
  `the placeholder \${${name}} has no value. Set ${name}, or set ${name}_FILE to the path of a file with the value.`

/** Looks up a variable. An empty one counts as not set, because a forgotten variable is often empty. */
export function lookUp(
  name: string,
  { env, cwd }: Surroundings,
): { readonly value: string } | { readonly problem: string | undefined } {
  const value = env[name]
  if (value !== undefined && value !== '') return { value }
  const file = env[`${name}_FILE`]
  if (file === undefined || file === '') return { problem: undefined }
  try {
    return { value: readFileSync(resolve(cwd, file), 'utf8').replace(/\r?\n$/, '') }
  } catch (error) {
    const { code = 'unknown' } = error as NodeJS.ErrnoException
    return { problem: `cannot read the file "${file}" of ${name}_FILE (${code}).` }
  }
}

const isPlain = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' &&
  value !== null &&
  (Object.getPrototypeOf(value) === Object.prototype || Object.getPrototypeOf(value) === null)
