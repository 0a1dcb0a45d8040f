import { describe, expect, it } from 'vitest'
import { paceOf } from '../src/server/pace.ts'

/** Returns times at ten per second. */
const steady = (from: number, count: number) =>
  Array.from({ length: count }, (_, at) => from + at * 100)

describe('the pace', () => {
  it('is the rate when there is no gap', () => {
    const { perSecond, overall } = paceOf(steady(0, 101), 10)
    expect([perSecond, overall]).toEqual([10, 10])
  })

  it('excludes a gap in which nothing was sent', () => {
    const { perSecond, overall } = paceOf([...steady(0, 51), ...steady(9_900, 51)], 10)
    expect(perSecond).toBeCloseTo(10, 0)
    expect(overall).toBeLessThan(7)
  })

  it('does not count a burst after a gap as fast', () => {
    const late = steady(5_100, 50).map((at) => Math.max(at, 10_000))
    const { perSecond } = paceOf([...steady(0, 51), ...late, ...steady(10_100, 50)], 10)
    expect(perSecond).toBeCloseTo(10, 0)
  })

  it('reports what is too fast or too slow, with and without gaps', () => {
    const fast = [...steady(0, 101), ...steady(15_000, 101)].map((at) => at / 2)
    expect(paceOf(fast, 10).perSecond).toBeGreaterThan(15)
    const slow = [...steady(0, 101), ...steady(15_000, 101)].map((at) => at * 2)
    expect(paceOf(slow, 10).perSecond).toBeCloseTo(5, 0)
  })
})
