import type { SeededRandom } from '@redrive/testing'

/** Returns a whole number from `low` to `high`, both included. */
export function between(random: SeededRandom, low: number, high: number): number {
  return low + random.int(high - low + 1)
}
