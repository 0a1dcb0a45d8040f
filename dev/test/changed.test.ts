import { expect, test } from 'vitest'
import { readGraph } from '../check/changed/graph.ts'
import { select } from '../check/changed/select.ts'
import { ROOT } from '../check/workspace.ts'
import { PROOFS } from '../proofs/table.ts'
import { makeTree } from './tree.ts'

const manifest = (name: string) =>
  JSON.stringify({ name, exports: { '.': { '@redrive/source': './src/index.ts' } } })

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

test('a change selects the tests that import it, through packages and started programs', () => {
  expect(selected('packages/core/src/a.ts')).toEqual({
    everything: undefined,
    tests: ['packages/core/test/a.test.ts', 'packages/runtime/test/run.test.ts'],
    proofs: [],
  })
  expect(selected('packages/runtime/src/index.ts').tests).toEqual([
    'packages/runtime/test/run.test.ts',
  ])
})

test('a name leads to the file behind the entry of its package, the entry itself to all its users', () => {
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

test('a page selects only the tests that read it', () => {
  expect(selected('docs/sinks.md').tests).toEqual(['packages/sinks/test/docs.test.ts'])
  expect(selected('docs/other.md')).toMatchObject({ everything: undefined, tests: [] })
})

test('a golden file and a deleted file select the tests of their package', () => {
  expect(selected('packages/sinks/test/golden/out.txt').tests).toEqual([
    'packages/sinks/test/docs.test.ts',
  ])
  expect(selected('packages/core/src/deleted.ts').tests).toContain(
    'packages/runtime/test/run.test.ts',
  )
})

test.each([
  'packages/testing/src/fake-clock.ts',
  'packages/runtime/src/ports.ts',
  'packages/runtime/package.json',
  'pnpm-lock.yaml',
  'dev/services.d/kafka.sh',
  'a-new-folder/file.bin',
])('%s selects everything', (file) => {
  const { everything, tests } = selected(file)
  expect(everything).toContain(file)
  expect(tests).toHaveLength(3)
})

test('in this repository a rule of the core reaches simulator, faults and every transport', () => {
  const merge = PROOFS.filter(({ tier }) => tier === 'merge')
  const { tests, proofs } = select(['packages/core/src/decide.ts'], readGraph(ROOT), merge)
  expect(proofs).toEqual(merge.map(({ name }) => name))
  for (const folder of ['simulation', 'faults', 'packages/transports/kafka', 'packages/cli']) {
    expect(tests.filter((path) => path.startsWith(`${folder}/test/`))).not.toEqual([])
  }
})

test('in this repository a change of one transport leaves the others alone', () => {
  const file = 'packages/transports/rabbitmq/src/unsettled.ts'
  const { tests, proofs } = select([file], readGraph(ROOT), PROOFS)
  expect(tests).toContain('packages/transports/rabbitmq/test/contract.test.ts')
  expect(tests.filter((path) => path.includes('transports/kafka'))).toEqual([])
  expect(proofs).toContain('faults-rabbitmq-smoke')
  expect(proofs).not.toContain('faults-kafka-smoke')
})
