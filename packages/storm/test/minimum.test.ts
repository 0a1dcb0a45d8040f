import { describe, expect, it } from 'vitest'
import { ShortestDrain } from '../src/minimum.ts'

const OPTIONS = { outageFrom: 10_000, outageUntil: 20_000, serviceMs: 100, drainedDepth: 0 }

/** One message every 200 ms, from the start until then. */
function drainOf(fields: Partial<ConstructorParameters<typeof ShortestDrain>[0]>, until = 60_000) {
  const shortest = new ShortestDrain({ kind: 'refuse', ...OPTIONS, ...fields })
  for (let at = 0; at <= until; at += 200) shortest.arrive(at)
  return shortest.ms
}

describe('the shortest drain', () => {
  it('serves the backlog with the spare capacity', () => {
    // 50 messages wait after 10 s; each second 10 are served and 5 arrive.
    expect(drainOf({})).toBe(10_000)
  })

  it('is shorter when part of the capacity was left', () => {
    // A fifth of the capacity serves 20 of the 50 messages.
    const ms = drainOf({ kind: 'brown-out' })
    expect(ms).toBeGreaterThan(5_500)
    expect(ms).toBeLessThan(6_500)
  })

  it('ends when few enough messages wait', () => {
    expect(drainOf({ drainedDepth: 10 })).toBeLessThan(drainOf({}))
  })

  it('is known for arrivals that end before it', () => {
    expect(drainOf({}, 15_000)).toBe(2_600)
  })
})
