import { execFileSync } from 'node:child_process'
import { existsSync, globSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { expect, test } from 'vitest'
import { changedFiles } from '../check/changed/files.ts'
import { readGraph } from '../check/changed/graph.ts'
import { READS, STARTED, select } from '../check/changed/select.ts'
import { ROOT } from '../check/workspace.ts'
import { PROOFS } from '../proofs/table.ts'
import { makeTree } from './tree.ts'

const manifest = (name: string) =>
  JSON.stringify({ name, exports: { '.': { '@redrive/source': './src/index.ts' } } })

const REAL = readGraph(ROOT)
/** This file. The tables that it compares with the repository are in `dev/`, which selects all tests. */
const OWN = relative(ROOT, import.meta.filename)

const TREE = {
  'packages/core/package.json': manifest('@redrive/core'),
  'packages/core/src/index.ts': `export { a } from './a.ts'\nexport { b as c } from './b.ts'`,
  'packages/core/src/a.ts': 'export const a = 1',
  'packages/core/src/b.ts': 'export const b = 1',
  'packages/core/test/a.test.ts': `import '../src/a.ts'`,
  'packages/runtime/package.json': manifest('@redrive/runtime'),
  'packages/runtime/src/index.ts': `import { a } from '@redrive/core'`,
  'packages/runtime/test/run.test.ts': `const MAIN = new URL('./program.ts', import.meta.url)`,
  'packages/runtime/test/program.ts': `import '../src/index.ts'`,
  'packages/sinks/package.json': manifest('@redrive/sinks'),
  'packages/sinks/src/index.ts': '',
  'packages/sinks/test/docs.test.ts': `readFile(join(here, '../../../docs/sinks.md'))`,
  'packages/sinks/test/golden/out.txt': 'text',
  'docs/sinks.md': 'text',
  'docs/other.md': 'text',
}

const selected = (file: string) => select([file], readGraph(makeTree(TREE)), [])

test('selects the tests that import a change, through packages and started programs', () => {
  expect(selected('packages/core/src/a.ts')).toEqual({
    everything: undefined,
    tests: ['packages/core/test/a.test.ts', 'packages/runtime/test/run.test.ts'],
    proofs: [],
  })
  expect(selected('packages/runtime/src/index.ts').tests).toEqual([
    'packages/runtime/test/run.test.ts',
  ])
})

test('follows a name to the file behind its package entry, and the entry itself to all its users', () => {
  expect(selected('packages/core/src/b.ts').tests).toEqual([])
  expect(selected('packages/core/src/index.ts').tests).toEqual([
    'packages/runtime/test/run.test.ts',
  ])
  const renamed = { ...TREE, 'packages/sinks/src/index.ts': `import { c } from '@redrive/core'` }
  const sinks = { ...renamed, 'packages/sinks/test/c.test.ts': `import '../src/index.ts'` }
  const of = (tree: typeof renamed, file: string) =>
    select([file], readGraph(makeTree(tree)), []).tests
  expect(of(sinks, 'packages/core/src/b.ts')).toEqual(['packages/sinks/test/c.test.ts'])
  const taken = {
    ...sinks,
    'packages/sinks/src/index.ts': `const { a, c: d } = await import('@redrive/core')`,
  }
  expect(of(taken, 'packages/core/src/b.ts')).toEqual(['packages/sinks/test/c.test.ts'])
  const other = {
    ...taken,
    'packages/sinks/src/index.ts': `const { a } = await import('@redrive/core')`,
  }
  expect(of(other, 'packages/core/src/b.ts')).toEqual([])
  const all = { ...sinks, 'packages/sinks/src/index.ts': `import * as core from '@redrive/core'` }
  expect(of(all, 'packages/core/src/b.ts')).toEqual(['packages/sinks/test/c.test.ts'])
})

test('selects only the tests that read a page', () => {
  expect(selected('docs/sinks.md').tests).toEqual(['packages/sinks/test/docs.test.ts'])
  expect(selected('docs/other.md')).toMatchObject({ everything: undefined, tests: [] })
})

test('selects the readers of a page with a variable in its path, and of a deleted page', () => {
  const tree = makeTree({
    ...TREE,
    'packages/sinks/test/table.test.ts': 'readFile(`${ROOT}docs/other.md`)',
  })
  expect(select(['docs/other.md'], readGraph(tree), []).tests).toEqual([
    'packages/sinks/test/table.test.ts',
  ])
  rmSync(join(tree, 'docs/sinks.md'))
  const graph = readGraph(tree, ['docs/sinks.md'])
  expect(select(['docs/sinks.md'], graph, []).tests).toEqual(['packages/sinks/test/docs.test.ts'])
})

test('accepts a package whose entry does not exist yet or is not a module', () => {
  const exports = {
    '.': { '@redrive/source': './src/index.ts' },
    './package.json': './package.json',
  }
  const tree = {
    ...TREE,
    'packages/sqs/package.json': JSON.stringify({ name: '@redrive/sqs', exports }),
    'packages/sqs/src/options.ts': '',
    'packages/sqs/test/options.test.ts': `import '../src/options.ts'`,
  }
  const { tests } = select(['packages/sqs/src/options.ts'], readGraph(makeTree(tree)), [])
  expect(tests).toEqual(['packages/sqs/test/options.test.ts'])
})

test('selects the tests of the package for a golden file and for a deleted file', () => {
  expect(selected('packages/sinks/test/golden/out.txt').tests).toEqual([
    'packages/sinks/test/docs.test.ts',
  ])
  expect(selected('packages/core/src/deleted.ts').tests).toContain(
    'packages/runtime/test/run.test.ts',
  )
})

test.each([
  'packages/testing/src/fake-clock.ts',
  'packages/runtime/src/ports/transport.ts',
  'packages/runtime/package.json',
  'pnpm-lock.yaml',
  'dev/services.d/kafka.sh',
  'a-new-folder/file.bin',
])('%s selects everything', (file) => {
  const { everything, tests } = selected(file)
  expect(everything).toContain(file)
  expect(tests).toHaveLength(3)
})

test('selects simulator, faults and every transport for a rule of the core in this repository', () => {
  const merge = PROOFS.filter(({ tier }) => tier === 'merge')
  const { tests, proofs } = select(['packages/core/src/decide.ts'], REAL, merge)
  expect(proofs).toEqual(merge.map(({ name }) => name))
  for (const folder of ['simulation', 'faults', 'packages/transports/kafka', 'packages/cli']) {
    expect(tests.filter((path) => path.startsWith(`${folder}/test/`))).not.toEqual([])
  }
})

test('does not select other transports for a change of one transport in this repository', () => {
  const file = 'packages/transports/rabbitmq/src/unacked.ts'
  const { tests, proofs } = select([file], REAL, PROOFS)
  expect(tests).toContain('packages/transports/rabbitmq/test/contract.test.ts')
  expect(tests.filter((path) => path.includes('transports/kafka'))).toEqual([])
  expect(proofs).toContain('faults-rabbitmq-smoke')
  expect(proofs).not.toContain('faults-kafka-smoke')
})

test('does not select the tests of the console for a change of a broker, except with another change', () => {
  const ofConsole = (...files: readonly string[]) =>
    select(files, REAL, []).tests.filter((test) => test.startsWith('packages/console/'))
  const source = 'packages/transports/rabbitmq/src/source.ts'
  expect(ofConsole(source)).toEqual([])
  const http = ofConsole('packages/server/src/http/problem.ts')
  expect(http.length).toBeGreaterThan(5)
  expect(ofConsole(source, 'packages/server/src/http/problem.ts')).toEqual(http)
})

test('selects the proofs test for files that it compares with the table of proofs', () => {
  const reached = (file: string) => select([file], REAL, PROOFS)
  for (const file of ['packages/cli/test/new.proof.ts', 'examples/new/src/demo.ts']) {
    expect(reached(file).tests).toContain('dev/test/proofs.test.ts')
  }
  const merge = PROOFS.filter(({ tier }) => tier === 'merge')
  const { proofs } = select(['faults/src/main.ts'], REAL, merge)
  expect(proofs).toEqual(['faults-rabbitmq-smoke', 'faults-kafka-smoke', 'faults-postgres-smoke'])
})

test.each([
  // The page, which Vite builds for the tests in a browser, and what it builds it with.
  ['packages/console/src/data/simulation.ts', 'packages/console/test/browser/policy.test.ts'],
  ['packages/console/src/simulation/worker.ts', 'packages/console/test/browser/policy.test.ts'],
  [
    'packages/console/src/simulation/node-modules.ts',
    'packages/console/test/browser/policy.test.ts',
  ],
  [
    'packages/console/src/simulation/set-immediate.ts',
    'packages/console/test/browser/policy.test.ts',
  ],
  ['packages/console/vite.config.ts', 'packages/console/test/browser/shell.test.ts'],
  ['packages/console/test/browser/build.ts', 'packages/console/test/browser/shell.test.ts'],
  // A program that the test compiles and starts.
  ['examples/nestjs-service/src/main.ts', 'packages/nestjs/test/rabbitmq.test.ts'],
  // Files that tests find by a pattern, also new and deleted ones.
  ['.github/workflows/check.yml', 'dev/test/sbom.test.ts'],
  ['packages/console/src/main.tsx', 'dev/test/sbom.test.ts'],
  ['docs/reference/new.md', 'dev/test/site.test.ts'],
  ['docs/kafka.md', 'dev/test/site.test.ts'],
  ['faults/src/server/attacks/ssrf.ts', 'dev/test/threat-model.test.ts'],
  ['packages/server/test/http-filter.test.ts', 'dev/test/threat-model.test.ts'],
  ['packages/console/src/main.tsx', 'packages/console/test/tokens.test.ts'],
  ['packages/server/src/http/catalog-metrics.ts', 'dev/test/dashboards.test.ts'],
  ['packages/transports/rabbitmq/src/enact.ts', 'dev/test/reference.test.ts'],
  ['packages/sinks/README.md', 'dev/test/proofs.test.ts'],
])('selects for %s the test %s', (file, expected) => {
  expect(select([file], REAL, []).tests).toContain(expected)
})

test.each(['hostile/consumer.ts', 'put-back/program.ts', 'schedule/worker.ts'])(
  'selects the fault proof that starts the program %s of a drill',
  (program) => {
    const { proofs } = select([`faults/src/catalog/drills/${program}`], REAL, PROOFS)
    expect(proofs).toContain('faults-catalog-quick')
  },
)

test('the tables of started programs and of files that tests read have no outdated row', () => {
  const started = Object.entries(STARTED).flat(2)
  expect(started.filter((path) => !existsSync(join(ROOT, path)))).toEqual([])
  expect(Object.keys(READS).filter((path) => !existsSync(join(ROOT, path)))).toEqual([])
  const patterns = Object.values(READS).flat()
  const exclude = (path: string) => path.includes('node_modules')
  expect(patterns.filter((one) => globSync(one, { cwd: ROOT, exclude }).length === 0)).toEqual([])
})

test('each test that finds files by a pattern has a row in the table of files that tests read', () => {
  const readers = [...REAL.keys()].filter(
    (path) =>
      path.endsWith('.test.ts') && readFileSync(join(ROOT, path), 'utf8').includes('globSync('),
  )
  expect(readers.length).toBeGreaterThan(3)
  expect(readers.filter((path) => READS[path] === undefined)).toEqual([OWN])
})

/** Creates a repository with one commit on the branch. */
function repository(branch: string) {
  const root = makeTree({ 'a.txt': '1' })
  const git = (...args: readonly string[]) =>
    execFileSync('git', ['-c', 'user.name=x', '-c', 'user.email=x@x', ...args], {
      cwd: root,
      stdio: ['ignore', 'pipe', 'ignore'],
      encoding: 'utf8',
    })
  const commit = (text: string) => {
    writeFileSync(join(root, 'a.txt'), text)
    git('commit', '-qam', text)
  }
  git('init', '-q', '-b', branch)
  git('add', '.')
  git('commit', '-qm', 'first')
  return { root, git, commit }
}

test('counts a commit on top of main wherever it is checked out, without a base', () => {
  const { root, git, commit } = repository('main')
  git('checkout', '-qb', 'work')
  commit('2')
  expect(changedFiles(undefined, root).changed).toEqual(['a.txt'])
  git('checkout', '-q', '--detach')
  expect(changedFiles(undefined, root).changed).toEqual(['a.txt'])
  git('checkout', '-q', 'main')
  expect(changedFiles(undefined, root).changed).toEqual([])
  expect(changedFiles('work', root).changed).toEqual(['a.txt'])
})

test('rejects a base that cannot be found instead of returning no changes', () => {
  const { root } = repository('trunk')
  expect(() => changedFiles(undefined, root)).toThrow(/no branch "main"/)
  expect(() => changedFiles('v0', root)).toThrow('There is no commit "v0".')
})

test('a failure of git is an error, not an empty change', () => {
  const { root } = repository('main')
  writeFileSync(join(root, '.git/index'), 'damaged')
  expect(() => changedFiles(undefined, root)).toThrow(/index file/)
})
