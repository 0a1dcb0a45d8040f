import { resolve } from 'node:path'
import { expect, test } from 'vitest'
import { checkPurity } from '../check/purity.ts'
import { makeTree } from './tree.ts'

test('core is pure', () => {
  expect(checkPurity(resolve(import.meta.dirname, '../../packages/core/src'))).toEqual([])
})

test.each([
  ['Date.now', 'const now = Date.now()'],
  ['Date.now', 'const clock = Date.now'],
  ['new Date()', 'const now = new Date()'],
  ['Date()', 'const now = Date()'],
  ['Math.random', 'const random = options.random ?? Math.random'],
  ['performance', 'const now = performance.now()'],
  ['setTimeout', 'setTimeout(() => {}, 1)'],
  ['console', "console.log('hello')"],
  ['process', 'const { env } = process.env'],
  ['globalThis', 'const now = globalThis.Date.now()'],
])('rejects %s in: %s', (what, statement) => {
  const root = makeTree({ 'deep/a.ts': `export {}\n${statement}\n` })
  expect(checkPurity(root)).toContainEqual(expect.stringContaining(`deep/a.ts:2 uses ${what}: `))
})

test.each([
  'export const at = (ms: number): Date => new Date(ms)',
  'export const next = (input: { random: () => number }): number => input.random()',
  'export const run = (policy: { process(): void }): void => policy.process()',
  '// Math.random() and Date.now() are only mentioned here',
  "export const text = 'Date.now()'",
])('%s is pure', (content) => {
  expect(checkPurity(makeTree({ 'a.ts': content }))).toEqual([])
})

test('rejects a folder without sources', () => {
  expect(checkPurity(makeTree({}))).toEqual([expect.stringContaining('no source files')])
})
