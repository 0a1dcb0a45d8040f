import { describe, expect, it } from 'vitest'
import { seededRandom } from '@redrive/testing'
import type { Limit } from '../src/gauge.ts'
import { exponentOf, fitGrowth, judgeGrowth, type Sized } from '../src/growth/fit.ts'

const DECADES = [10, 30, 100, 300, 1_000, 3_000, 10_000]
const LINEAR: Limit = { name: 'exponent', unit: '', below: 1.1 }
const LEVEL: Limit = { name: 'exponent', unit: '', below: 0.5 }

/** Returns measurements at each size, each with an error of up to `noise`. */
function measured(cost: (size: number) => number, noise = 0, sizes = DECADES, seed = 1): Sized[] {
  const random = seededRandom(seed)
  const once = (size: number) => cost(size) * (1 + noise * (2 * random() - 1))
  return sizes.map((size) => ({ size, costs: Array.from({ length: 9 }, () => once(size)) }))
}

const verdictOf = (limit: Limit, sized: readonly Sized[]) =>
  judgeGrowth(limit, exponentOf(sized, seededRandom(2))).kind

const fitOf = (cost: (size: number) => number, sizes = DECADES) =>
  fitGrowth(sizes.map((size) => ({ x: size, y: cost(size) })))

describe('the exponent of growth', () => {
  it('is the exponent of a power, whatever its factor', () => {
    for (const exponent of [0.5, 1, 1.3, 2]) {
      expect(fitOf((n) => 7 * n ** exponent).exponent).toBeCloseTo(exponent, 2)
      expect(fitOf((n) => 0.001 * n ** exponent).exponent).toBeCloseTo(exponent, 2)
    }
  })

  it('does not depend on a constant part', () => {
    for (const constant of [1, 100, 3_000]) {
      const fit = fitOf((n) => constant + n)
      expect(fit.exponent).toBeCloseTo(1, 1)
      expect(fit.constant).toBeCloseTo(constant, -Math.log10(constant) + 0.5)
    }
  })

  it('is fitted only where the growing part matters', () => {
    expect(fitOf((n) => 3_000 + n).sizes).toEqual([3_000, 10_000])
    expect(fitOf((n) => n).sizes).toEqual(DECADES)
  })

  it('is 0 when the cost is constant, or falls', () => {
    expect(fitOf(() => 5)).toEqual({ exponent: 0, constant: 5, sizes: [] })
    expect(fitOf((n) => 5 + 100 / n).exponent).toBe(0)
  })

  it('is small for a logarithm', () => {
    expect(fitOf((n) => Math.log2(n)).exponent).toBeLessThan(0.4)
    expect(fitOf((n) => 20 + Math.log2(n)).exponent).toBeLessThan(0.4)
  })

  it('is the plain slope of two sizes, because they cannot show a constant part', () => {
    const fit = fitOf((n) => 3 * n ** 1.5, [1, 4])
    expect(fit.exponent).toBeCloseTo(1.5, 9)
    expect(fit).toMatchObject({ constant: 0, sizes: [1, 4] })
  })

  it('rejects what has no logarithm', () => {
    expect(() => fitOf((n) => n - 10)).toThrow('costs above zero')
    expect(() => fitOf((n) => n, [10])).toThrow('two sizes or more')
  })
})

describe('the verdict on growth', () => {
  it('accepts linear growth and rejects n^1.3, with noise', () => {
    expect(
      verdictOf(
        LINEAR,
        measured((n) => n, 0.1),
      ),
    ).toBe('met')
    expect(
      verdictOf(
        LINEAR,
        measured((n) => n ** 1.3, 0.1),
      ),
    ).toBe('missed')
  })

  it('finds no growth in a constant with noise', () => {
    for (let seed = 1; seed <= 8; seed += 1) {
      expect(
        verdictOf(
          LEVEL,
          measured(() => 50, 0.2, DECADES, seed),
        ),
      ).toBe('met')
    }
  })

  it('finds no growth when each size was disturbed for as long as it was measured', () => {
    const random = seededRandom(3)
    const disturbed = () => 50 * (1 + 0.2 * (2 * random() - 1))
    expect(verdictOf(LEVEL, measured(disturbed))).toBe('met')
    expect(
      verdictOf(
        LINEAR,
        measured((n) => (n * disturbed()) / 50),
      ),
    ).toBe('met')
  })

  it('finds growth behind a constant part that hides it at most sizes', () => {
    const square = (n: number) => 1e7 + n ** 2
    // The slope over all sizes would be within the bound.
    expect(verdictOf(LINEAR, measured(square, 0.1))).toBe('missed')
    expect(
      verdictOf(
        LEVEL,
        measured((n) => 2_000 + n, 0.1),
      ),
    ).toBe('missed')
  })

  it('finds growth that begins at the largest size', () => {
    const cliff = (n: number) => (n < 10_000 ? 10 : 40)
    expect(verdictOf(LINEAR, measured(cliff, 0.05))).toBe('missed')
  })

  it('accepts linear growth behind a constant part', () => {
    for (let seed = 1; seed <= 8; seed += 1) {
      const sized = measured((n) => 500 + n, 0.05, DECADES, seed)
      expect(verdictOf({ ...LINEAR, below: 1.25 }, sized)).toBe('met')
    }
  })

  it('does not decide when the noise is larger than the distance to the bound', () => {
    expect(
      verdictOf(
        LINEAR,
        measured((n) => n ** 1.1, 0.3),
      ),
    ).toBe('undecided')
  })
})
