/**
 * Defines which package may import which, and forbids cycles. The table is the rule. The rest of
 * the file applies it to every package, so a new package is covered from its first file.
 */
import { globSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { type Import, readImports } from './read-imports.ts'
import { checkReferences } from './references.ts'
import { isMain } from './workspace.ts'

interface Room {
  /** A folder, or every folder in it with `/*`. The lists below omit `packages/`. */
  readonly folder: string
  readonly mayImport: readonly string[]
  /** Additional imports for the file src/composition.ts and the folder src/composition: the concrete adapters. */
  readonly compositionMayImport?: readonly string[]
  /** Additional imports for tests. Default: the test tools and the memory transport. */
  readonly testsMayImport?: readonly string[]
  /** Whether it may use Node's modules. Default: yes. */
  readonly node?: false
  /** Whether its sources may use packages from outside this repository. Default: yes. */
  readonly outside?: false
  /** Whether it may use the entry `./internal` of a package. Default: yes. */
  readonly internal?: false
}

const PORTS = ['core', 'runtime']
const TEST_TOOLS = ['core', 'runtime', 'testing', 'transports/memory', 'dev/support']
const CONCRETE = ['transports/*', 'sinks', 'stores/*']

// biome-ignore format: one row per room, to be read as a table
export const ROOMS: readonly Room[] = [
  // Core decides and has no side effects. Its tests need no other package either.
  { folder: 'packages/core', mayImport: [], testsMayImport: [], node: false, outside: false },
  { folder: 'packages/runtime', mayImport: ['core'] },

  // Adapters know the ports and never each other.
  { folder: 'packages/transports/postgres', mayImport: [...PORTS, 'postgres-internal'] },
  { folder: 'packages/transports/redis', mayImport: [...PORTS, 'redis-internal'] },
  { folder: 'packages/transports/*', mayImport: PORTS },
  { folder: 'packages/sinks', mayImport: PORTS },
  { folder: 'packages/stores/postgres', mayImport: [...PORTS, 'postgres-internal'] },
  { folder: 'packages/stores/redis', mayImport: [...PORTS, 'redis-internal'] },
  { folder: 'packages/stores/*', mayImport: PORTS },
  { folder: 'packages/telemetry', mayImport: PORTS },
  // It shares the HTTP client and the check of addresses with the sinks.
  { folder: 'packages/alerts', mayImport: [...PORTS, 'sinks'] },
  // They put consumers into frameworks. The memory transport is for tests of users.
  { folder: 'packages/fastify', mayImport: PORTS },
  { folder: 'packages/nestjs', mayImport: [...PORTS, 'transports/memory'] },
  { folder: 'packages/testing', mayImport: [...PORTS, 'transports/memory'] },

  // Shared by the four packages that use PostgreSQL: transactions, migrations, error messages.
  { folder: 'packages/postgres-internal', mayImport: PORTS },

  // Shared by the transport and the store of Redis: the two client libraries, scripts with a timeout.
  { folder: 'packages/redis-internal', mayImport: PORTS },

  // The control plane. Only server and cli choose concrete adapters, in one file each. The
  // catalog's background work runs on the outbox of the same database.
  { folder: 'packages/catalog', mayImport: [...PORTS, 'postgres-internal'], compositionMayImport: ['transports/postgres'], testsMayImport: [...TEST_TOOLS, 'transports/postgres'] },
  // One definition of the API for the server, the command line and the console, which runs in a
  // browser.
  { folder: 'packages/api', mayImport: [], node: false },
  { folder: 'packages/server', mayImport: [...PORTS, 'alerts', 'api', 'catalog', 'postgres-internal', 'telemetry'], compositionMayImport: CONCRETE, testsMayImport: [...TEST_TOOLS, ...CONCRETE, 'alerts', 'api', 'catalog'] },
  { folder: 'packages/doctor', mayImport: PORTS, testsMayImport: [...TEST_TOOLS, 'transports/*', 'catalog'] },
  { folder: 'packages/storm', mayImport: [...PORTS, 'transports/memory'] },
  { folder: 'packages/cli', mayImport: [...PORTS, 'api', 'catalog', 'doctor', 'server', 'storm', 'telemetry'], compositionMayImport: CONCRETE, testsMayImport: [...TEST_TOOLS, ...CONCRETE, 'api', 'catalog', 'doctor', 'server'] },
  // Its tests start a real server. The server package contains its build, so no package imports it.
  { folder: 'packages/console', mayImport: ['api', 'core', 'storm'], testsMayImport: [...TEST_TOOLS, 'transports/*', 'api', 'catalog', 'server', 'storm'], node: false },

  // Used only by the tests, benchmarks and fault scenarios of this repository.
  { folder: 'dev/support', mayImport: ['core'] },

  // The proofs may use everything. No row names them, so no package imports a proof.
  // The expected class of real errors, as data. Only its tests use the packages.
  { folder: 'classification', mayImport: [], testsMayImport: ['core', 'dev/support'], node: false, outside: false },
  { folder: 'simulation', mayImport: [...PORTS, 'storm', 'transports/memory', 'testing'] },
  { folder: 'faults', mayImport: [...PORTS, ...CONCRETE, 'alerts', 'api', 'catalog', 'server', 'telemetry', 'testing', 'dev/support'] },
  // Examples are programs of users.
  { folder: 'examples/*', mayImport: [...PORTS, ...CONCRETE, 'fastify', 'nestjs', 'alerts', 'catalog', 'telemetry', 'testing'], internal: false },
  { folder: 'bench', mayImport: [...PORTS, ...CONCRETE, 'api', 'catalog', 'server', 'telemetry', 'testing', 'dev/support'] },
]

/**
 * A published package may use it only in tests, because `dependencies` are installed for every
 * user.
 */
const TEST_KIT = '@redrive/testing'

interface Manifest {
  readonly name: string
  readonly private?: boolean
  readonly dependencies?: Readonly<Record<string, string>>
  readonly optionalDependencies?: Readonly<Record<string, string>>
  readonly peerDependencies?: Readonly<Record<string, string>>
}

interface Package {
  readonly name: string
  readonly folder: string
  readonly room: Room
}

interface SourceFile {
  /** Relative to the root of the repository. */
  readonly path: string
  readonly owner: Package
  readonly imports: readonly Import[]
}

/** Returns one sentence for each broken rule below `root`; an empty list when there is none. */
export function checkImports(root: string, rooms: readonly Room[] = ROOMS): string[] {
  const problems: string[] = []
  const packages = findPackages(root, rooms, problems)
  const files = packages.flatMap((owner) => readSources(root, owner))
  // A check without files must not pass.
  if (files.length === 0) problems.push(`no source files below ${root}`)
  for (const file of files) problems.push(...checkDirections(root, file, packages))
  problems.push(...findCycles(importGraph(root, files, packages)))
  return problems
}

function findPackages(root: string, rooms: readonly Room[], problems: string[]): Package[] {
  const manifests = globSync(
    ['*/package.json', '{dev,examples}/*/package.json', 'packages/{*,*/*}/package.json'],
    { cwd: root },
  )
  const packages: Package[] = []
  for (const manifest of manifests.filter((path) => !path.includes('node_modules')).sort()) {
    const folder = dirname(manifest)
    const room = rooms.find((candidate) => covers(candidate.folder, folder))
    const content = JSON.parse(readFileSync(join(root, manifest), 'utf8')) as Manifest
    if (installsTestKit(content)) {
      problems.push(`${manifest} lists "${TEST_KIT}": move it to "devDependencies"`)
    }
    if (room) packages.push({ name: content.name, folder, room })
    else problems.push(`${folder} has no row in the table of dev/check/imports.ts: add one`)
  }
  return packages
}

/** Returns whether users of a published package would install the test kit with it. */
function installsTestKit(manifest: Manifest): boolean {
  const { dependencies, optionalDependencies, peerDependencies } = manifest
  const installed = { ...dependencies, ...optionalDependencies, ...peerDependencies }
  return manifest.private !== true && TEST_KIT in installed
}

function covers(pattern: string, folder: string): boolean {
  return pattern.endsWith('/*') ? dirname(folder) === pattern.slice(0, -2) : folder === pattern
}

function readSources(root: string, owner: Package): SourceFile[] {
  return globSync(`${owner.folder}/{src,test}/**/*.{ts,tsx}`, { cwd: root })
    .sort()
    .map((path) => ({ path, owner, imports: readImports(join(root, path)) }))
}

function checkDirections(root: string, file: SourceFile, packages: readonly Package[]): string[] {
  const problems = file.imports.flatMap(({ specifier, line }) => {
    const reason = refusal(root, file, specifier, packages)
    return reason ? [`${file.path}:${line} imports '${specifier}': ${reason}`] : []
  })
  return [...new Set(problems)]
}

/** Returns why this import is not allowed, or undefined when it is. */
function refusal(
  root: string,
  file: SourceFile,
  specifier: string,
  packages: readonly Package[],
): string | undefined {
  const { room, folder, name } = file.owner
  const isTest = file.path.startsWith(`${folder}/test/`)
  if (specifier.startsWith('.')) {
    const home = isTest ? folder : `${folder}/src`
    const target = relative(root, resolve(root, dirname(file.path), specifier))
    return target.startsWith(`${home}/`) ? undefined : `a relative import must stay inside ${home}`
  }
  const target = packages.find((candidate) => isOrBelow(specifier, candidate.name))
  if (target?.name === name) {
    return isTest ? undefined : 'a package must import its own files by relative path'
  }
  if (target) {
    if (room.internal === false && specifier === `${target.name}/internal`) {
      return `${withoutPackages(folder)} uses only public entries`
    }
    const allowed = allowedRooms(file, isTest)
    if (allowed.some((pattern) => covers(pattern, withoutPackages(target.folder)))) return undefined
    const list = allowed.length > 0 ? allowed.join(', ') : 'no other package'
    return `${withoutPackages(folder)} may import ${list}`
  }
  if (specifier.startsWith('@redrive/')) return 'there is no such package'
  if (isTest) return undefined
  if (specifier.startsWith('node:')) {
    return room.node === false
      ? `${withoutPackages(folder)} does not use Node's modules`
      : undefined
  }
  return room.outside === false ? `${withoutPackages(folder)} has no dependency` : undefined
}

function allowedRooms({ path, owner: { room, folder } }: SourceFile, isTest: boolean): string[] {
  const isComposition =
    path === `${folder}/src/composition.ts` || path.startsWith(`${folder}/src/composition/`)
  const extra = isComposition ? (room.compositionMayImport ?? []) : []
  const tools = isTest ? (room.testsMayImport ?? TEST_TOOLS) : []
  return [...new Set([...room.mayImport, ...extra, ...tools])]
}

function withoutPackages(folder: string): string {
  return folder.replace(/^packages\//, '')
}

function isOrBelow(specifier: string, name: string): boolean {
  return specifier === name || specifier.startsWith(`${name}/`)
}

/** Type-only imports count: two files that need each other's types belong together. */
function importGraph(
  root: string,
  files: readonly SourceFile[],
  packages: readonly Package[],
): Map<string, string[]> {
  const entries = new Map(
    packages.flatMap(({ name, folder }) => [
      [name, `${folder}/src/index.ts`],
      [`${name}/internal`, `${folder}/src/internal.ts`],
    ]),
  )
  return new Map(
    files.map((file) => [
      file.path,
      file.imports
        .map(({ specifier }) =>
          specifier.startsWith('.')
            ? relative(root, resolve(root, dirname(file.path), specifier))
            : entries.get(specifier),
        )
        .filter((target) => target !== undefined),
    ]),
  )
}

function findCycles(graph: ReadonlyMap<string, readonly string[]>): string[] {
  const problems: string[] = []
  const finished = new Set<string>()
  const visit = (path: string, trail: readonly string[]): void => {
    const start = trail.indexOf(path)
    if (start >= 0) {
      problems.push(`import cycle: ${[...trail.slice(start), path].join(' -> ')}`)
      return
    }
    if (finished.has(path)) return
    for (const target of graph.get(path) ?? []) visit(target, [...trail, path])
    finished.add(path)
  }
  for (const path of graph.keys()) visit(path, [])
  return problems
}

if (isMain(import.meta)) {
  const root = resolve(import.meta.dirname, '../..')
  const problems = [...checkReferences(root), ...checkImports(root)]
  for (const problem of problems) console.error(problem)
  process.exitCode = problems.length > 0 ? 1 : 0
}
