/** The parts of `pnpm-lock.yaml` that the software bill of materials needs. */
export interface Lockfile {
  /** Packages of the workspace, by folder: the resolved version of each dependency. */
  readonly importers: ReadonlyMap<string, ReadonlyMap<string, string>>
  /** The same with their development dependencies. */
  readonly development: ReadonlyMap<string, ReadonlyMap<string, string>>
  /** Integrity of each package, by `name@version`. */
  readonly integrity: ReadonlyMap<string, string>
  /** Dependencies of each package, by `name@version` and the versions of its peers. */
  readonly snapshots: ReadonlyMap<string, ReadonlyMap<string, string>>
}

const VERSION = '9.0'
/** Dependencies of users of a package. Development dependencies are not among them. */
const SECTIONS = ['dependencies', 'optionalDependencies']

/** Reads the lockfile. pnpm writes only maps and single lines, so no parser of all of YAML is needed. */
export function readLockfile(text: string): Lockfile {
  const tree = readTree(text)
  const version = textOf(tree, 'lockfileVersion')
  if (version !== VERSION) {
    throw new Error(`The lockfile has version ${version}, expected ${VERSION}.`)
  }
  const importers = branch(tree, 'importers')
  return {
    importers: mapOf(importers, (one) => dependenciesOf(one, SECTIONS, versionOf)),
    development: mapOf(importers, (one) => dependenciesOf(one, ['devDependencies'], versionOf)),
    integrity: mapOf(branch(tree, 'packages'), integrityOf),
    snapshots: mapOf(branch(tree, 'snapshots'), (one) => dependenciesOf(one, SECTIONS, versionOf)),
  }
}

interface Tree extends Map<string, Tree | string> {}

/** Reads maps that are nested by indentation. Maps in braces stay text. */
function readTree(text: string): Tree {
  const root: Tree = new Map()
  const open: { readonly indent: number; readonly tree: Tree }[] = [{ indent: -1, tree: root }]
  for (const line of text.split('\n')) {
    const [, spaces = '', key, value = ''] = LINE.exec(line) ?? []
    if (key === undefined) continue
    while ((open.at(-1)?.indent ?? -1) >= spaces.length) open.pop()
    const parent = open.at(-1)?.tree ?? root
    const child: Tree | string = value === '' ? new Map() : unquoted(value)
    parent.set(unquoted(key), child)
    if (typeof child !== 'string') open.push({ indent: spaces.length, tree: child })
  }
  return root
}

const LINE = /^( *)('[^']+'|[^\s'#][^:]*(?::[^\s:][^:]*)*):(?: (.+))?$/

const unquoted = (text: string) => text.replace(/^'(.*)'$/, '$1')

function branch(tree: Tree, name: string): Tree {
  const found = tree.get(name)
  return found instanceof Map ? found : new Map()
}

function textOf(tree: Tree, name: string): string {
  const found = tree.get(name)
  return typeof found === 'string' ? found : ''
}

const mapOf = <T>(tree: Tree, convert: (value: Tree | string) => T): ReadonlyMap<string, T> =>
  new Map([...tree].map(([key, value]) => [key, convert(value)]))

function dependenciesOf(
  one: Tree | string,
  sections: readonly string[],
  convert: (value: Tree | string) => string,
): ReadonlyMap<string, string> {
  if (typeof one === 'string') return new Map()
  return new Map(sections.flatMap((name) => [...mapOf(branch(one, name), convert)]))
}

const versionOf = (value: Tree | string) =>
  typeof value === 'string' ? value : textOf(value, 'version')

function integrityOf(value: Tree | string): string {
  const resolution = typeof value === 'string' ? '' : textOf(value, 'resolution')
  return /integrity: ([^,}\s]+)/.exec(resolution)?.[1] ?? ''
}
