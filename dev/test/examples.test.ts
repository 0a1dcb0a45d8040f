import { expect, test } from 'vitest'
import { blocksIn, isListed, prints, unusedEntries } from '../check/examples/blocks.ts'
import { makeTree } from './tree.ts'

function blocksOf(...lines: readonly string[]) {
  const root = makeTree({ 'a.md': lines.join('\n') })
  return blocksIn(root, 'a.md')
}

test('finds the TypeScript blocks of a page and their lines', () => {
  const blocks = blocksOf(
    '# A',
    '```sh',
    'ls',
    '```',
    '```ts',
    'first()',
    '```',
    '',
    '```ts',
    'second()',
    '```',
  )
  expect(blocks.map(({ line, text }) => [line, text])).toEqual([
    [5, 'first()\n'],
    [9, 'second()\n'],
  ])
})

test('gives a block the imports of earlier blocks that it uses and does not declare', () => {
  const [, second, third] = blocksOf(
    ...[
      '```ts',
      "import { pool, type Row as Line } from 'db'",
      "import type { Order } from './order.ts'",
      '```',
    ],
    ...['```ts', 'const line: Line = pool.read() as Order', '```'],
    ...['```ts', "import { pool } from 'other'", 'const line = pool', '```'],
  )
  expect(second?.inherited.split('\n')).toEqual([
    "import { pool } from 'db'",
    "import { type Row as Line } from 'db'",
    "import type { Order } from './order.ts'",
  ])
  expect(third?.inherited).toBe('')
})

test('recognises programs, and blocks that print', () => {
  const blocks = blocksOf(
    ...['<!-- program: a.mts -->', '```ts', 'console.log(1)', '```', '```ts', 'log(2)', '```'],
  )
  expect(blocks.map((block) => [block.line, block.isProgram, prints(block)])).toEqual([
    [2, true, true],
    [5, false, false],
  ])
})

test('reports entries of a list that fit no block', () => {
  const blocks = blocksOf('```ts', 'first()', '```')
  const [used, unused] = [
    ['a.md', 'first', 'a reason'],
    ['a.md', 'second', 'a reason'],
  ] as const
  expect(blocks.map((block) => isListed(block, [unused, used]))).toEqual([true])
  expect(unusedEntries(blocks, [used, unused])).toEqual([unused])
})
