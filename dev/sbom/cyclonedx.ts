import { createHash } from 'node:crypto'
import { posix } from 'node:path'
import type { Lockfile } from './lockfile.ts'

/** A published package of the workspace. */
export interface Published {
  readonly name: string
  readonly version: string
  /** Relative to the root, with forward slashes. */
  readonly folder: string
  /** A package whose development dependencies are a part of the build of this one, and which ones. Default: none. */
  readonly bundled?: { readonly folder: string; readonly names: readonly string[] }
}

interface Component {
  readonly type: 'library'
  readonly 'bom-ref': string
  readonly name: string
  readonly version: string
  readonly purl: string
  readonly licenses?: readonly { readonly license: { readonly id: string } }[]
  readonly hashes?: readonly { readonly alg: string; readonly content: string }[]
}

/** A software bill of materials: CycloneDX 1.6. */
export interface Bom {
  readonly bomFormat: 'CycloneDX'
  readonly specVersion: '1.6'
  readonly serialNumber: string
  readonly version: 1
  readonly metadata: { readonly component: object }
  readonly components: readonly Component[]
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn: readonly string[] }[]
}

const ROOT_REF = 'redrive'

/**
 * Lists the published packages and everything that an installation of them brings, with hashes and the graph. The same
 * lockfile gives the same text: it has no time, and the serial number is a hash.
 */
export function bomOf(lockfile: Lockfile, published: readonly Published[]): Bom {
  const components = new Map<string, Component>()
  const graph = new Map<string, readonly string[]>()
  const byFolder = new Map(published.map((one) => [one.folder, one]))
  const add = (key: string): string => {
    const { name, version } = parted(key)
    const ref = purlOf(name, version)
    if (graph.has(key)) return ref
    graph.set(key, [])
    components.set(ref, { ...libraryOf(name, version), hashes: hashesOf(lockfile, name, version) })
    const needed = lockfile.snapshots.get(key) ?? new Map<string, string>()
    graph.set(
      key,
      [...needed].map(([each, at]) => add(keyOf(lockfile, each, at))),
    )
    return ref
  }
  for (const { name, version, folder, bundled } of published) {
    const ref = purlOf(name, version)
    components.set(ref, {
      ...libraryOf(name, version),
      licenses: [{ license: { id: 'Apache-2.0' } }],
    })
    const direct = [...(lockfile.importers.get(folder) ?? []), ...bundledOf(lockfile, bundled)]
    const needed = direct.flatMap(([each, at]) => {
      if (!at.startsWith('link:')) return [add(keyOf(lockfile, each, at))]
      const other = byFolder.get(posix.join(folder, at.slice('link:'.length)))
      return other === undefined ? [] : [purlOf(other.name, other.version)]
    })
    graph.set(ref, needed)
  }
  return assembled(published, [...components.values()], graph)
}

function bundledOf(
  { development }: Lockfile,
  bundled: Published['bundled'],
): readonly (readonly [string, string])[] {
  const versions = development.get(bundled?.folder ?? '')
  return (bundled?.names ?? []).map((name) => [name, versions?.get(name) ?? 'missing'])
}

function assembled(
  published: readonly Published[],
  components: readonly Component[],
  graph: ReadonlyMap<string, readonly string[]>,
): Bom {
  // Snapshots that differ only in their peers are one component.
  const merged = new Map<string, Set<string>>()
  for (const [key, needed] of graph) {
    const { name, version } = parted(key)
    const ref = key.startsWith('pkg:') ? key : purlOf(name, version)
    merged.set(ref, new Set([...(merged.get(ref) ?? []), ...needed]))
  }
  merged.set(ROOT_REF, new Set(published.map(({ name, version }) => purlOf(name, version))))
  const content = {
    metadata: { component: { type: 'application', 'bom-ref': ROOT_REF, name: 'redrive' } },
    components: components.toSorted((one, other) => compare(one.purl, other.purl)),
    dependencies: [...merged]
      .map(([ref, needed]) => ({ ref, dependsOn: [...needed].toSorted(compare) }))
      .toSorted((one, other) => compare(one.ref, other.ref)),
  }
  const serialNumber = `urn:uuid:${uuidOf(JSON.stringify(content))}`
  return { bomFormat: 'CycloneDX', specVersion: '1.6', serialNumber, version: 1, ...content }
}

const compare = (one: string, other: string) => (one < other ? -1 : one > other ? 1 : 0)

const libraryOf = (name: string, version: string): Component => {
  const purl = purlOf(name, version)
  return { type: 'library', 'bom-ref': purl, name, version, purl }
}

/** Returns the package URL. The @ of a scope is encoded. */
const purlOf = (name: string, version: string) => `pkg:npm/${name.replace(/^@/, '%40')}@${version}`

/** Splits `name@version(peers)`. */
function parted(key: string): { readonly name: string; readonly version: string } {
  const [plain = ''] = key.split('(')
  const at = plain.lastIndexOf('@')
  return { name: plain.slice(0, at), version: plain.slice(at + 1) }
}

/** Returns the key of a dependency. The version of an alias is already a key. */
function keyOf({ snapshots }: Lockfile, name: string, version: string): string {
  const key = `${name}@${version}`
  if (snapshots.has(key)) return key
  if (snapshots.has(version)) return version
  throw new Error(`The lockfile has no package "${key}".`)
}

function hashesOf({ integrity }: Lockfile, name: string, version: string) {
  const [, algorithm, base64] =
    /^(sha\d+)-(.+)$/.exec(integrity.get(`${name}@${version}`) ?? '') ?? []
  if (algorithm === undefined || base64 === undefined) {
    throw new Error(`The lockfile has no integrity of "${name}@${version}".`)
  }
  const content = Buffer.from(base64, 'base64').toString('hex')
  return [{ alg: algorithm.toUpperCase().replace('SHA', 'SHA-'), content }]
}

/** Returns a UUID of version 8 from the hash of a text. */
function uuidOf(text: string): string {
  const hex = createHash('sha256').update(text).digest('hex')
  const variant = ((Number.parseInt(hex.charAt(16), 16) & 3) | 8).toString(16)
  const parts = [hex.slice(0, 8), hex.slice(8, 12), `8${hex.slice(13, 16)}`]
  return [...parts, `${variant}${hex.slice(17, 20)}`, hex.slice(20, 32)].join('-')
}
