import { resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { checkImports } from '../check/imports.ts'
import { makeTree } from './tree.ts'

const MANIFESTS = {
  'packages/core/package.json': '{ "name": "@redrive/core" }',
  'packages/runtime/package.json': '{ "name": "@redrive/runtime" }',
  'packages/testing/package.json': '{ "name": "@redrive/testing" }',
  'packages/server/package.json': '{ "name": "@redrive/server" }',
  'packages/transports/memory/package.json': '{ "name": "@redrive/memory" }',
  'packages/transports/kafka/package.json': '{ "name": "@redrive/kafka" }',
  'simulation/package.json': '{ "name": "@redrive/simulation" }',
  'examples/shop/package.json': '{ "name": "shop" }',
}

/** Returns the problems of one file in a tree with the usual packages. */
function check(path: string, content: string): string[] {
  return checkImports(makeTree({ ...MANIFESTS, [path]: content }))
}

describe('the real tree', () => {
  test('follows the table and has no cycle', () => {
    expect(checkImports(resolve(import.meta.dirname, '../..'))).toEqual([])
  })
})

describe('directions', () => {
  test.each([
    ['packages/core/src/a.ts', '@redrive/runtime', 'core may import no other package'],
    ['packages/core/src/a.ts', 'node:fs', "core does not use Node's modules"],
    ['packages/core/src/a.ts', 'lodash', 'core has no dependency'],
    ['packages/core/test/a.test.ts', '@redrive/testing', 'core may import no other package'],
    ['packages/core/src/a.ts', '../../runtime/src/b.ts', 'must stay inside packages/core/src'],
    ['packages/core/src/a.ts', '../test/b.ts', 'must stay inside packages/core/src'],
    ['packages/runtime/src/a.ts', '@redrive/memory', 'runtime may import core'],
    ['packages/runtime/src/a.ts', '@redrive/runtime', 'its own files by relative path'],
    ['packages/runtime/src/a.ts', '@redrive/nowhere', 'there is no such package'],
    ['packages/transports/kafka/src/a.ts', '@redrive/memory', 'may import core, runtime'],
    ['packages/transports/kafka/src/a.ts', '@redrive/memory/deep', 'may import core, runtime'],
    ['packages/testing/src/a.ts', '@redrive/simulation', 'may import core, runtime'],
    ['packages/testing/src/a.ts', '@redrive/kafka', 'may import core, runtime'],
    ['packages/server/src/a.ts', '@redrive/kafka', 'may import core, runtime'],
    ['packages/runtime/src/a.ts', '@redrive/kafka/internal', 'runtime may import core'],
    ['examples/shop/src/a.ts', '@redrive/core/internal', 'uses only public entries'],
  ])('%s may not import %s', (path, specifier, reason) => {
    const problems = check(path, `const one = 1\nexport { b } from '${specifier}'\n`)
    expect(problems).toEqual([expect.stringContaining(`${path}:2 imports '${specifier}': `)])
    expect(problems[0]).toContain(reason)
  })

  test.each([
    ['packages/runtime/src/a.ts', '@redrive/core'],
    ['packages/runtime/src/a.ts', '@redrive/core/internal'],
    ['packages/runtime/src/a.ts', 'node:timers'],
    ['packages/runtime/test/a.test.ts', '@redrive/memory'],
    ['packages/transports/kafka/src/a.ts', 'some-client'],
    ['packages/transports/memory/test/a.test.ts', '@redrive/testing'],
    ['packages/server/src/composition.ts', '@redrive/kafka'],
    ['packages/server/src/composition/kafka.ts', '@redrive/kafka'],
    ['simulation/src/a.ts', '@redrive/memory'],
  ])('%s may import %s', (path, specifier) => {
    expect(check(path, `import { b } from '${specifier}'`)).toEqual([])
  })

  test.each([
    "import type { B } from '@redrive/runtime'",
    "import '@redrive/runtime'",
    "export * from '@redrive/runtime'",
    "export type { B } from '@redrive/runtime'",
    "const b = await import('@redrive/runtime')",
  ])('counts every form of import: %s', (content) => {
    expect(check('packages/core/src/a.ts', content)).toHaveLength(1)
  })

  test('ignores an import in a comment or a string', () => {
    const content = "// import '@redrive/runtime'\nexport const a = \"import '@redrive/runtime'\"\n"
    expect(check('packages/core/src/a.ts', content)).toEqual([])
  })

  test('rejects a package without a row in the table', () => {
    const problems = check('packages/misc/package.json', '{ "name": "@redrive/misc" }')
    expect(problems).toContainEqual(expect.stringContaining('packages/misc has no row'))
  })

  test.each(['dependencies', 'optionalDependencies', 'peerDependencies'])(
    'a published package may not list the test kit in %s',
    (kind) => {
      const manifest = { name: '@redrive/server', [kind]: { '@redrive/testing': 'workspace:^' } }
      expect(check('packages/server/package.json', JSON.stringify(manifest))).toContain(
        'packages/server/package.json lists "@redrive/testing": move it to "devDependencies"',
      )
    },
  )

  test.each([
    ['packages/server/package.json', { devDependencies: { '@redrive/testing': '*' } }],
    ['simulation/package.json', { private: true, dependencies: { '@redrive/testing': '*' } }],
  ])('%s may list the test kit as %j', (path, manifest) => {
    const content = JSON.stringify({ name: '@redrive/one', ...manifest })
    expect(check(path, content)).toEqual([expect.stringContaining('no source files')])
  })

  test('rejects a tree without sources', () => {
    expect(checkImports(makeTree(MANIFESTS))).toEqual([expect.stringContaining('no source files')])
  })
})

describe('cycles', () => {
  test('names all files of a cycle of three', () => {
    const root = makeTree({
      ...MANIFESTS,
      'packages/core/src/a.ts': "import { b } from './b.ts'",
      'packages/core/src/b.ts': "import { c } from './deep/c.ts'",
      'packages/core/src/deep/c.ts': "import { a } from '../a.ts'",
    })
    expect(checkImports(root)).toEqual([
      'import cycle: packages/core/src/a.ts -> packages/core/src/b.ts -> ' +
        'packages/core/src/deep/c.ts -> packages/core/src/a.ts',
    ])
  })

  test('reports a file that imports itself as a cycle', () => {
    expect(check('packages/core/src/a.ts', "import { a } from './a.ts'")).toHaveLength(1)
  })

  test('counts type-only imports in a cycle', () => {
    const root = makeTree({
      ...MANIFESTS,
      'packages/core/src/a.ts': "import type { B } from './b.ts'",
      'packages/core/src/b.ts': "import type { A } from './a.ts'",
    })
    expect(checkImports(root)).toHaveLength(1)
  })

  test('does not report two ways to the same file as a cycle', () => {
    const root = makeTree({
      ...MANIFESTS,
      'packages/core/src/a.ts': "import { b } from './b.ts'\nimport { c } from './c.ts'",
      'packages/core/src/b.ts': "import { c } from './c.ts'",
      'packages/core/src/c.ts': 'export const c = 1',
    })
    expect(checkImports(root)).toEqual([])
  })
})
