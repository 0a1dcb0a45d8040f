import { hasAny, namesOf, type Thrown } from './names.ts'
import { firstNames, isA, read, readItems, readPath } from './read.ts'

/** Real chains have two or three links. A longer one is a loop or a mistake. */
export const MAX_LINKS = 16

/**
 * Returns the thrown value, then its causes, then their causes: one level per wrapping.
 * Only an AggregateError, or a wrapper with several properties, puts more than one value on a level.
 */
export function levelsOf(error: unknown): readonly (readonly Thrown[])[] {
  const seen = new Set<unknown>()
  const levels: Thrown[][] = []
  let level: readonly unknown[] = [error]
  while (level.length > 0) {
    const fresh = level
      .filter((link) => admit(seen, link))
      .map((link): Thrown => ({ error: link, names: namesOf(link) }))
    if (fresh.length > 0) levels.push(fresh)
    level = fresh.flatMap(wrappedBy)
  }
  return levels
}

function admit(seen: Set<unknown>, link: unknown): boolean {
  if (seen.size >= MAX_LINKS || seen.has(link)) return false
  seen.add(link)
  return true
}

/**
 * Where packages keep the error that they wrap, other than under `cause`. It must be an error there: pg keeps a text
 * under `detail`.
 */
const WRAPPED_PATHS: readonly (readonly string[])[] = [
  ['parent'], // Sequelize
  ['driverError'], // TypeORM
  ['detail'], // stripe
  ['lastNodeError'], // ioredis, for a cluster
  ['originalError'], // node-redis, when its reconnect strategy fails
  ['meta', 'driverAdapterError'], // Prisma
]

/** An error that wraps others has one of these. */
const WRAPPED_NAMES: readonly string[] = ['cause', 'errors', ...firstNames(WRAPPED_PATHS)]

function wrappedBy({ error, names }: Thrown): readonly unknown[] {
  if (!hasAny(names, WRAPPED_NAMES)) return []
  const cause = read(error, 'cause')
  const wrapped = WRAPPED_PATHS.map((path) => readPath(error, path))
  // Members must be errors: zod 3 and form libraries keep plain issues under `errors`.
  const members = readItems(read(error, 'errors'), MAX_LINKS)
  const errors = [...wrapped, ...members].filter((item) => isA(item, Error))
  return cause === undefined || cause === null ? errors : [cause, ...errors]
}
