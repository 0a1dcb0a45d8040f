import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { seededRandom } from '@redrive/testing'
import { bootstrap, bootstrapMedian, median, medianRatio, quantile, slope } from '../src/stats.ts'

const costs = fc.array(fc.double({ min: 1, max: 1e6, noNaN: true }), {
  minLength: 1,
  maxLength: 40,
})
const pairs = costs.chain((left) =>
  fc.tuple(
    fc.constant(left),
    fc.array(fc.double({ min: 1, max: 1e6, noNaN: true }), {
      minLength: left.length,
      maxLength: left.length,
    }),
  ),
)

/** One draw of a normal distribution (Box-Muller). */
function normal(random: () => number): number {
  return Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random())
}

describe('median and quantile', () => {
  it('take the middle, and the mean of the two middle values', () => {
    expect(median([3, 1, 2])).toBe(2)
    expect(median([4, 1, 3, 2])).toBe(2.5)
    expect(median([9])).toBe(9)
  })

  it('order by value, not by text', () => {
    expect(median([10, 9, 100])).toBe(10)
  })

  it('interpolate between ranks as numpy does', () => {
    expect(quantile([1, 2, 3, 4], 0.25)).toBe(1.75)
    expect(quantile([10, 20, 30, 40, 50], 0.9)).toBeCloseTo(46, 10)
    expect(quantile([5, 1], 0)).toBe(1)
    expect(quantile([5, 1], 1)).toBe(5)
  })

  it('leave the same number of values below and above the median', () => {
    fc.assert(
      fc.property(costs, (values) => {
        const middle = median(values)
        const below = values.filter((value) => value < middle).length
        const above = values.filter((value) => value > middle).length
        expect(below).toBeLessThanOrEqual(values.length / 2)
        expect(above).toBeLessThanOrEqual(values.length / 2)
      }),
    )
  })

  it('reject an empty list instead of returning NaN', () => {
    expect(() => median([])).toThrow(RangeError)
  })
})

describe('bootstrapMedian', () => {
  it('has no width when all values are equal', () => {
    expect(bootstrapMedian([2, 2, 2], seededRandom(1))).toEqual({ low: 2, high: 2 })
  })

  it('contains the median and stays inside the values', () => {
    fc.assert(
      fc.property(costs, fc.integer(), (values, seed) => {
        const { low, high } = bootstrapMedian(values, seededRandom(seed))
        expect(low).toBeLessThanOrEqual(median(values))
        expect(high).toBeGreaterThanOrEqual(median(values))
        expect(low).toBeGreaterThanOrEqual(Math.min(...values))
        expect(high).toBeLessThanOrEqual(Math.max(...values))
      }),
      { numRuns: 50 },
    )
  })

  it('covers the true median in about 95 of 100 experiments', () => {
    const random = seededRandom(11)
    let covered = 0
    for (let experiment = 0; experiment < 300; experiment += 1) {
      const values = Array.from({ length: 30 }, () => normal(random))
      const { low, high } = bootstrapMedian(values, random)
      if (low <= 0 && high >= 0) covered += 1
    }
    expect(covered / 300).toBeGreaterThan(0.91)
    expect(covered / 300).toBeLessThan(0.985)
  })

  it('narrows with the square root of the number of rounds', () => {
    const random = seededRandom(5)
    const width = (rounds: number) => {
      const widths = Array.from({ length: 20 }, () => {
        const values = Array.from({ length: rounds }, () => normal(random))
        const { low, high } = bootstrapMedian(values, random)
        return high - low
      })
      return median(widths)
    }
    const narrowing = width(20) / width(180)
    expect(narrowing).toBeGreaterThan(2.2)
    expect(narrowing).toBeLessThan(4)
  })
})

describe('medianRatio', () => {
  it('compares round by round, so a slow minute of both sides cancels out', () => {
    const right = [100, 900, 100, 120, 5_000]
    const left = right.map((cost) => cost * 0.5)
    const ratio = medianRatio(left, right, seededRandom(1))
    expect(ratio.median).toBeCloseTo(0.5, 12)
    expect(ratio.low).toBeCloseTo(0.5, 12)
    expect(ratio.high).toBeCloseTo(0.5, 12)
  })

  it('takes the geometric middle of an even number of rounds', () => {
    expect(medianRatio([1, 4], [1, 1], seededRandom(1)).median).toBeCloseTo(2, 12)
  })

  it('is the reciprocal when the sides are swapped', () => {
    fc.assert(
      fc.property(pairs, ([left, right]) => {
        const there = medianRatio(left, right, seededRandom(1)).median
        const back = medianRatio(right, left, seededRandom(1)).median
        expect(there * back).toBeCloseTo(1, 9)
      }),
      { numRuns: 50 },
    )
  })

  it('returns the same interval for the same seed', () => {
    const left = [1, 2, 3, 4, 5, 6, 7, 8]
    const right = [2, 1, 4, 3, 6, 5, 8, 7]
    const first = medianRatio(left, right, seededRandom(1))
    expect(medianRatio(left, right, seededRandom(1))).toEqual(first)
  })

  it('rejects sides of different length and costs of zero', () => {
    expect(() => medianRatio([1, 2], [1], seededRandom(1))).toThrow(RangeError)
    expect(() => medianRatio([1], [1, 2], seededRandom(1))).toThrow(RangeError)
    expect(() => medianRatio([0], [1], seededRandom(1))).toThrow(RangeError)
  })
})

describe('bootstrap', () => {
  const highest = (blocks: readonly number[][]) => Math.max(...blocks.flat())

  it('returns the statistic of the blocks, inside its interval', () => {
    const blocks = [[1, 2], [3], [4, 9]]
    const { median: figure, low, high } = bootstrap(blocks, highest, seededRandom(1), 500)
    expect(figure).toBe(9)
    expect(low).toBeGreaterThanOrEqual(2)
    expect(high).toBe(9)
  })

  it('resamples whole blocks, so that values measured together stay together', () => {
    const sizes = new Set<number>()
    const size = (blocks: readonly number[][]) => {
      sizes.add(blocks.flat().length)
      return 0
    }
    bootstrap([[1], [1, 1, 1]], size, seededRandom(1), 100)
    expect([...sizes].toSorted((a, b) => a - b)).toEqual([2, 4, 6])
  })

  it('repeats for the same seed', () => {
    const blocks = Array.from({ length: 20 }, (_, value) => [value])
    const run = (seed: number) => bootstrap(blocks, highest, seededRandom(seed), 50)
    expect(run(3)).toEqual(run(3))
  })
})

describe('slope', () => {
  it('finds the rise of a straight line', () => {
    fc.assert(
      fc.property(fc.integer({ min: -100, max: 100 }), (rise) => {
        const points = [0, 1, 2, 5].map((x) => ({ x, y: 7 + rise * x }))
        expect(slope(points)).toBeCloseTo(rise, 9)
      }),
    )
  })

  it('is zero when the values only alternate', () => {
    const points = [1, 2, 2, 1].map((y, x) => ({ x, y }))
    expect(slope(points)).toBeCloseTo(0, 12)
  })
})
