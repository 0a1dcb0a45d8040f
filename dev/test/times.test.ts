import { join } from 'node:path'
import { expect, test } from 'vitest'
import { formatSeconds, slowestFiles, timesTable } from '../check/times.ts'
import { ROOT } from '../check/workspace.ts'
import { makeTree } from './tree.ts'

test('formats a duration in seconds below two minutes and in minutes above', () => {
  expect(formatSeconds(0.04)).toBe('0.0 s')
  expect(formatSeconds(119.94)).toBe('119.9 s')
  expect(formatSeconds(120)).toBe('2 min 00 s')
  expect(formatSeconds(3_599.9)).toBe('60 min 00 s')
})

test('sorts the table slowest first, without background steps in the total', () => {
  const times = [
    { name: 'types', seconds: 10 },
    { name: 'tests', seconds: 200 },
    { name: 'servers (in the background)', seconds: 60 },
  ]
  expect(timesTable('Time', times).split('\n')).toEqual([
    'Time',
    '   3 min 20 s  tests',
    '       60.0 s  servers (in the background)',
    '       10.0 s  types',
    '   3 min 30 s  total',
  ])
})

test('reads the slowest test files from the JSON report', () => {
  const file = (name: string, seconds: number) => ({
    name: join(ROOT, name),
    startTime: 1_000,
    endTime: 1_000 + seconds * 1_000,
  })
  const report = { testResults: [file('a.test.ts', 1), file('b.test.ts', 3), file('c.test.ts', 2)] }
  const folder = makeTree({ 'tests.json': JSON.stringify(report) })
  expect(slowestFiles(join(folder, 'tests.json'), 2).split('\n')).toEqual([
    'Slowest test files (of 3)',
    '        3.0 s  b.test.ts',
    '        2.0 s  c.test.ts',
  ])
})

test('reports a test report that vitest did not finish, and keeps the table of times', () => {
  const folder = makeTree({ 'tests.json': '{"testResults":[{"name":"a.te' })
  expect(slowestFiles(join(folder, 'tests.json'))).toMatch(
    /^No times of test files: .*tests\.json is not complete \(SyntaxError: /,
  )
})
