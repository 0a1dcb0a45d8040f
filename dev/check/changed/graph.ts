/**
 * Finds which file uses which. An import is a use. A text with the path of another file is also a
 * use, because tests start programs and read pages and golden files by path. A name that a
 * package's entry exports from another file is a use of that file only, not of the other files
 * behind the entry.
 */
import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { readImports } from '../read-imports.ts'

/** The files that each file uses; paths are relative to the root. */
export type Graph = ReadonlyMap<string, readonly string[]>

const SOURCES = [
  '{packages/*,packages/*/*,simulation,classification,bench,faults,examples/*,dev}/**/*.{ts,tsx}',
  '*.ts',
]
const NOT_OURS = /(^|\/)(node_modules|dist|\.tsbuild)\//
/** A text that looks like the path of a file, as in `new URL('../src/main.ts', import.meta.url)`. */
const NAMED_FILE = /['"`/}]((?:\.{0,2}\/)*[\w./-]+\.(?:tsx?|md|json|sh|txt|sql|ya?ml))['"`]/g

/** `deleted`: files that no longer exist. A text with the path of one of them still counts as a use. */
export function readGraph(root: string, deleted: readonly string[] = []): Graph {
  const entries = packageEntries(root)
  const packages = { entries, exports: readExports(root, entries), deleted: new Set(deleted) }
  const paths = globSync(SOURCES, { cwd: root }).filter((path) => !NOT_OURS.test(path))
  return new Map(paths.map((path) => [path, usedBy(root, path, packages)]))
}

/** Returns the file for each import of a Redrive package, such as `@redrive/api/enums`. */
function packageEntries(root: string): ReadonlyMap<string, string> {
  const manifests = globSync('packages/{*,*/*}/package.json', { cwd: root })
  return new Map(
    manifests
      .filter((path) => !NOT_OURS.test(path))
      .flatMap((path) => {
        const { name, exports = {} } = JSON.parse(
          readFileSync(join(root, path), 'utf8'),
        ) as Manifest
        return Object.entries(exports).flatMap(([subpath, conditions]): [string, string][] => {
          const source = typeof conditions === 'string' ? undefined : conditions['@redrive/source']
          return source === undefined
            ? []
            : [[`${name}${subpath.slice(1)}`, join(dirname(path), source)]]
        })
      }),
  )
}

interface Manifest {
  readonly name: string
  readonly exports?: Readonly<Record<string, string | Readonly<Record<string, string>>>>
}

/** Returns the id for the text of an entry, without the names that it exports from other files. */
export const textOf = (entry: string): string => `${entry}#text`

/** The files behind the names that each package entry exports from other files. */
type Exports = ReadonlyMap<string, ReadonlyMap<string, string>>

function readExports(root: string, entries: ReadonlyMap<string, string>): Exports {
  return new Map(
    // A package that is being written or renamed may not have the file yet.
    [...new Set(entries.values())]
      .filter((entry) => existsSync(join(root, entry)))
      .map((entry) => {
        const exported = readImports(join(root, entry)).flatMap(
          ({ specifier, exportedAs }): [string, string][] =>
            exportedAs === undefined || !specifier.startsWith('.')
              ? []
              : [[exportedAs, join(dirname(entry), specifier)]],
        )
        return [entry, new Map(exported)]
      }),
  )
}

interface Packages {
  readonly entries: ReadonlyMap<string, string>
  readonly exports: Exports
  readonly deleted: ReadonlySet<string>
}

function usedBy(root: string, path: string, packages: Packages): string[] {
  const absolute = join(root, path)
  const imported = readImports(absolute).flatMap(({ specifier, name }) =>
    specifier.startsWith('.')
      ? relative(root, resolve(dirname(absolute), specifier))
      : usedOfPackage(packages, specifier, name),
  )
  const named = [...readFileSync(absolute, 'utf8').matchAll(NAMED_FILE)].map(([, name = '']) =>
    existingFile(root, dirname(absolute), name, packages.deleted),
  )
  return [...new Set([...imported, ...named])].filter((file) => file !== undefined)
}

function usedOfPackage(
  { entries, exports }: Packages,
  specifier: string,
  name: string | undefined,
): readonly string[] {
  const entry = entries.get(specifier)
  if (entry === undefined) return []
  const file = name === undefined ? undefined : exports.get(entry)?.get(name)
  return file === undefined ? [entry, textOf(entry)] : [file, textOf(entry)]
}

function existingFile(
  root: string,
  folder: string,
  name: string,
  deleted: ReadonlySet<string>,
): string | undefined {
  const candidates = [resolve(folder, name), resolve(root, name)]
  const found = candidates.find((path) => existsSync(path) || deleted.has(relative(root, path)))
  return found === undefined ? undefined : relative(root, found)
}

/**
 * Returns the files that use one of these files, directly or through others, and the files
 * themselves.
 */
export function usersOf(graph: Graph, files: readonly string[]): ReadonlySet<string> {
  const users = new Map<string, string[]>()
  for (const [user, used] of graph) {
    for (const file of used) users.set(file, [...(users.get(file) ?? []), user])
  }
  const reached = new Set(files)
  // The set grows while it is iterated: each new file is visited once.
  for (const file of reached) for (const user of users.get(file) ?? []) reached.add(user)
  return reached
}
