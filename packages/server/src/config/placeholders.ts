import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'

/** Where a value is in the config. */
export type Path = readonly (string | number)[]

export interface Problem {
  readonly path: Path
  readonly text: string
}

export interface Surroundings {
  readonly env: Readonly<Record<string, string | undefined>>
  /** Files of `NAME_FILE` are relative to it. */
  readonly cwd: string
}

export interface Filled {
  readonly value: unknown
  readonly problems: readonly Problem[]
}

/** `$${` stands for a plain `${`, so that a password may have one. */
const PLACEHOLDER = /\$\$\{|\$\{([A-Za-z_]\w*)(?::-([^}]*))?\}/g

/**
 * Puts values in the place of `${NAME}` and `${NAME:-default}` wherever there is text. Everything that is
 * missing is told at once.
 */
export function fillPlaceholders(value: unknown, surroundings: Surroundings): Filled {
  const problems: Problem[] = []
  const fill = (one: unknown, path: Path): unknown => {
    if (typeof one === 'string') return fillText(one, path)
    if (Array.isArray(one)) return one.map((item, at) => fill(item, [...path, at]))
    if (!isPlain(one)) return one
    return Object.fromEntries(
      Object.entries(one).map(([name, of]) => [name, fill(of, [...path, name])]),
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

const notSet = (name: string) =>
  `the placeholder \${${name}} is not set. Set ${name}, or set ${name}_FILE to the name of a file that has the value.`

/** What is set to nothing counts as not set: a forgotten variable looks like that as often. */
function lookUp(
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
    return { problem: `${name}_FILE names ${file}, which cannot be read (${code}).` }
  }
}

const isPlain = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' &&
  value !== null &&
  (Object.getPrototypeOf(value) === Object.prototype || Object.getPrototypeOf(value) === null)
