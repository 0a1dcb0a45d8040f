import { expect, test } from 'vitest'
import { unprovenDelay } from '../src/schedule-retry.ts'

test('the delay of a run without proof ends just after the time limit, and past it keeps its length', () => {
  const limit = { maxAgeMs: 3_600_000, runs: 20 }
  const delayAfter = (runs: number, waitedMs: number) =>
    unprovenDelay(limit, { unproven: { runs, waitedMs } }, () => 0)
  expect(delayAfter(15, 3_000_000)).toBe(360_000)
  expect(delayAfter(15, 3_599_999)).toBe(36_001)
  expect(delayAfter(15, 3_600_000)).toBe(360_000)
  expect(delayAfter(3, 7_200_000)).toBe(2_813)
})
