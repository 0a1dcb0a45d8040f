import { expect } from 'vitest'

/** The best of five, ms of the processor: a machine with other work must not fail a test, but a slow pattern must. */
function bestTime(work: () => unknown): number {
  work()
  const times = Array.from({ length: 5 }, () => {
    const before = process.cpuUsage()
    work()
    return process.cpuUsage(before).user / 1_000
  })
  return Math.min(...times)
}

/** 100: a slow pattern needs thousands of times as long. */
const FACTOR_MAX = 100

/**
 * Expects that `hostile` takes less than `ms`, or not much longer than `ordinary`. Code with the counters of a mutation
 * run is many times slower, for both.
 */
export function expectFast(hostile: () => unknown, ordinary: () => unknown, ms: number): void {
  const time = bestTime(hostile)
  if (time >= ms) expect(time).toBeLessThan(FACTOR_MAX * bestTime(ordinary))
}

/** 100 kB of ordinary words. */
export const ORDINARY: string = 'order 4711 of customer 7f3c was rejected by the bank. '.repeat(
  1_900,
)
