import { resolve } from 'node:path'
import { expect, test } from 'vitest'
import { checkReferences } from '../check/references.ts'
import { makeTree } from './tree.ts'

const TREE = {
  'tsconfig.json': `{
    "files": [],
    "references": [{ "path": "packages/core" }, { "path": "packages/core/test" }, { "path": "dev" }]
  }`,
  'package.json': '{ "name": "workspace" }',
  'dev/tsconfig.json': '{}',
  'packages/core/package.json': '{ "name": "@redrive/core" }',
  'packages/core/tsconfig.json': '{}',
  'packages/core/test/tsconfig.json': '{}',
  'packages/core/test/one.test.ts': '',
}

const check = (files: Record<string, string> = {}) =>
  checkReferences(makeTree({ ...TREE, ...files }))

test('accepts the repository', () => {
  expect(checkReferences(resolve(import.meta.dirname, '../..'))).toEqual([])
})

test('accepts a tree whose projects are all listed', () => {
  expect(check()).toEqual([])
})

test.each([
  'packages/misc',
  'packages/stores/misc',
  'packages/core/other',
  'examples/misc',
  'bench',
])('prints the line to add for %s', (folder) => {
  expect(check({ [`${folder}/tsconfig.json`]: '{}' })).toEqual([
    `tsconfig.json does not list ${folder}: add the line { "path": "${folder}" }`,
  ])
})

test('rejects a package without a tsconfig.json', () => {
  expect(check({ 'packages/misc/package.json': '{ "name": "@redrive/misc" }' })).toEqual([
    expect.stringContaining('packages/misc has no tsconfig.json'),
  ])
})

test('rejects tests without a tsconfig.json', () => {
  const problems = check({
    'examples/misc/package.json': '{ "name": "@redrive/misc" }',
    'examples/misc/tsconfig.json': '{}',
    'examples/misc/test/one.test.ts': '',
  })
  expect(problems).toEqual([
    expect.stringContaining('examples/misc/test has no tsconfig.json'),
    expect.stringContaining('{ "path": "examples/misc" }'),
  ])
})

test.each(['packages/core/node_modules/pg', 'packages/core/dist', '.tools/node', 'dev/.cache/one'])(
  'skips %s, which a tool writes',
  (folder) => {
    expect(check({ [`${folder}/tsconfig.json`]: '{}', [`${folder}/package.json`]: '{}' })).toEqual(
      [],
    )
  },
)
