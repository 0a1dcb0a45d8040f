/** Selects the tests and proofs that a change reaches. */
import { matchesGlob } from 'node:path'
import type { Proof } from '../../proofs/table.ts'
import { type Graph, textOf, usersOf } from './graph.ts'

export interface Selection {
  /** Why everything is selected; undefined when the lists below are complete. */
  readonly everything: string | undefined
  readonly tests: readonly string[]
  readonly proofs: readonly string[]
}

/** A change of these reaches everything, whatever the imports are. */
const REACH_EVERYTHING: readonly RegExp[] = [
  /^packages\/testing\//,
  /^packages\/runtime\/src\/ports\//,
  /^pnpm-(lock|workspace)\.yaml$/,
  /(^|\/)package\.json$/,
  /(^|\/)tsconfig[\w.]*\.json$/,
  /^vitest\.config\.ts$/,
  /^dev\//,
  /^\.ci\//,
  /^\.node-version$/,
]

/** Read only by people, unless a test names the file. */
const PROSE = /\.md$|^LICENSE$|^\.changeset\/|^\.github\/|^\.(gitignore|editorconfig)$/
/** Settings of the formatter and linters; no test reads them. */
export const TOOL_SETTINGS = /^(biome\.json|\.oxlintrc\.json|knip\.jsonc)$/

/**
 * Programs that are started by a path which the graph does not resolve, such as one in a copy of the tree.
 * Proofs name theirs in dev/proofs/table.ts.
 */
export const STARTED: Readonly<Record<string, readonly string[]>> = {
  'simulation/test/mutants.test.ts': ['simulation/src/main.ts'],
  // It compiles the example and starts the output.
  'packages/nestjs/test/rabbitmq.test.ts': ['examples/nestjs-service/src/main.ts'],
  // Vite builds the pages that the browser tests open. Its config names a file that replaces modules of Node.
  'packages/console/test/browser/browser.ts': [
    'packages/console/src/main.tsx',
    'packages/console/src/components-page/main.tsx',
    'packages/console/test/browser/build.ts',
    'packages/console/vite.config.ts',
  ],
  'faults/src/catalog/drills/hostile/hostile.ts': ['faults/src/catalog/drills/hostile/consumer.ts'],
  'faults/src/catalog/drills/put-back/put-back.ts': [
    'faults/src/catalog/drills/put-back/program.ts',
  ],
  'faults/src/catalog/drills/schedule/schedule.ts': [
    'faults/src/catalog/drills/schedule/worker.ts',
  ],
}

/**
 * Test → patterns of the files that it reads, where it finds them by a pattern or by a path that the
 * graph does not resolve. A new or deleted file counts as well.
 */
export const READS: Readonly<Record<string, readonly string[]>> = {
  'dev/test/dashboards.test.ts': ['packages/server/src/http/{metrics,catalog-metrics}.ts'],
  // The proofs, the demos, and the pages whose programs a proof runs.
  'dev/test/proofs.test.ts': [
    '{packages/*,packages/*/*}/test/**/*.proof.ts',
    'examples/*/src/demo.ts',
    'README.md',
    'docs/**/*.md',
    '{packages/*,packages/*/*}/README.md',
  ],
  'dev/test/reference.test.ts': ['{packages/*,packages/*/*,classification}/src/**/*.ts'],
  'dev/test/sbom.test.ts': ['.github/workflows/*.yml', 'packages/console/src/**/*.{ts,tsx}'],
  'dev/test/site.test.ts': ['docs/**/*.md'],
  // The pages name attacks and tests.
  'dev/test/threat-model.test.ts': [
    'faults/src/server/**/*.ts',
    '{packages/*,dev}/test/**/*.test.ts',
  ],
  'packages/console/test/browser/components.test.ts': ['packages/console/src/components/*.tsx'],
  'packages/console/test/tokens.test.ts': ['packages/console/src/**/*.{css,tsx}'],
}

/** A transport of a broker. */
const BROKER = /^packages\/transports\/(?!memory\/)/
/**
 * Tests that a change of such a transport reaches only because the server can open every source. The console is tested
 * with sources in memory and with addresses at which nothing responds; tests of the server open the sources.
 */
const WITHOUT_BROKER = /^packages\/console\/test\//

const isTest = (path: string) => /\/test\/.*\.test\.ts$/.test(path)

export function select(
  changed: readonly string[],
  plain: Graph,
  proofs: readonly Proof[],
): Selection {
  const graph = withStarted(plain)
  const starts: string[] = []
  const brokerStarts: string[] = []
  for (const file of changed) {
    const found = startsOf(file, graph)
    if (typeof found === 'string') return everything(found, graph, proofs)
    const reads = readersOf(file, graph)
    if (BROKER.test(file)) brokerStarts.push(...found, ...reads)
    else starts.push(...found, ...reads)
  }
  const withBroker = [...usersOf(graph, brokerStarts)].filter((file) => !WITHOUT_BROKER.test(file))
  const reached = new Set([...usersOf(graph, starts), ...withBroker])
  return {
    everything: undefined,
    tests: [...reached].filter(isTest).sort(),
    proofs: proofs
      .filter(({ starts: programs }) => programs.some((program) => reached.has(program)))
      .map(({ name }) => name),
  }
}

/** Returns the tests with a pattern in READS that matches the file. */
function readersOf(file: string, graph: Graph): readonly string[] {
  return Object.entries(READS)
    .filter(([test, patterns]) => graph.has(test) && patterns.some((one) => matchesGlob(file, one)))
    .map(([test]) => test)
}

function withStarted(graph: Graph): Graph {
  return new Map([...graph].map(([file, used]) => [file, [...used, ...(STARTED[file] ?? [])]]))
}

function everything(reason: string, graph: Graph, proofs: readonly Proof[]): Selection {
  const tests = [...graph.keys()].filter(isTest).sort()
  return { everything: reason, tests, proofs: proofs.map(({ name }) => name) }
}

/**
 * Returns the files from which the change spreads, or a text that explains why it may reach
 * everything.
 */
function startsOf(file: string, graph: Graph): readonly string[] | string {
  if (REACH_EVERYTHING.some((pattern) => pattern.test(file))) return `${file} reaches everything`
  if (graph.has(file) || PROSE.test(file) || TOOL_SETTINGS.test(file)) return [file, textOf(file)]
  // A golden file, a schema or a deleted file: all tests of its package, and of packages that use
  // it.
  const [, folder, isInTests] =
    /^((?:packages\/(?:(?:transports|stores)\/)?|examples\/)?[\w-]+)\/(test\/)?/.exec(file) ?? []
  const inFolder = [...graph.keys()].filter((path) => path.startsWith(`${folder}/`))
  if (folder === undefined || inFolder.length === 0) return `${file} is unknown`
  if (isInTests !== undefined) return inFolder.filter(isTest)
  return inFolder.flatMap((path) => [path, textOf(path)])
}
