import { expect, test } from 'vitest'
import { compareFiles, type File } from '../check/longest-first.ts'

const file = (path: string, project = 'brokers', durationMs?: number): File => ({
  path: `packages/${path}.test.ts`,
  project,
  durationMs,
})
const inOrder = (...files: readonly File[]) =>
  files.toSorted(compareFiles).map(({ path }) => path.replace(/^packages\/|\.test\.ts$/g, ''))

test('the files that took longest start first, and those without a server last', () => {
  expect(
    inOrder(
      file('core/test/slow', 'pure', 9_000),
      file('kafka/test/short', 'brokers', 1_000),
      file('runtime/test/slower', 'pure-isolated', 10_000),
      file('server/test/long', 'integration', 5_000),
    ),
  ).toEqual(['server/test/long', 'kafka/test/short', 'runtime/test/slower', 'core/test/slow'])
})

test('a new file starts early, and without earlier times the files with long waits start first', () => {
  expect(
    inOrder(
      file('kafka/test/options'),
      file('kafka/test/restart'),
      file('kafka/test/known', 'brokers', 90_000),
      file('kafka/test/contract-lanes'),
      file('console/test/browser/shell', 'browser'),
    ),
  ).toEqual([
    'kafka/test/restart',
    'kafka/test/contract-lanes',
    'console/test/browser/shell',
    'kafka/test/options',
    'kafka/test/known',
  ])
})
