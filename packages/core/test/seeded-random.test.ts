import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { seededRandom } from '../src/index.ts'

const draws = (seed: number, count = 5) => {
  const random = seededRandom(seed)
  return Array.from({ length: count }, () => random())
}

const inOrder = (list: readonly number[]) => [...list].sort((one, other) => one - other)

describe('seededRandom', () => {
  it('gives the same numbers for the same seed, on every machine', () => {
    expect(draws(42).map((one) => Math.round(one * 2 ** 32))).toMatchInlineSnapshot(`
      [
        3011021589,
        3960382089,
        1547270628,
        4040468816,
        1355524940,
      ]
    `)
    expect(draws(42)).toEqual(draws(42))
    expect(seededRandom(42).seed).toBe(42)
  })

  it('gives other numbers for another seed, even a close one', () => {
    const firsts = Array.from({ length: 1_000 }, (_, seed) => draws(seed, 1)[0])
    expect(new Set(firsts).size).toBe(1_000)
    expect(draws(1)).not.toEqual(draws(1 + 2 ** 32))
  })

  it('stays in [0, 1) and is spread evenly', () => {
    const random = seededRandom(7)
    const buckets = Array.from({ length: 10 }, () => 0)
    for (let draw = 0; draw < 100_000; draw++) {
      const value = random()
      const bucket = Math.floor(value * 10)
      buckets[bucket] = (buckets[bucket] ?? 0) + 1
    }
    expect(buckets.length).toBe(10)
    for (const count of buckets) expect(Math.abs(count - 10_000)).toBeLessThan(500)
  })

  it('draws whole numbers below the bound, all of them', () => {
    const random = seededRandom(1)
    const seen = new Set(Array.from({ length: 1_000 }, () => random.int(6)))
    expect(seen).toEqual(new Set([0, 1, 2, 3, 4, 5]))
  })

  it('shuffles to the same items in another order', () => {
    fc.assert(
      fc.property(fc.array(fc.integer()), fc.nat(), (list, seed) => {
        const before = [...list]
        const shuffled = seededRandom(seed).shuffle(list)
        expect(inOrder(shuffled)).toEqual(inOrder(list))
        expect(list).toEqual(before)
      }),
    )
    const list = Array.from({ length: 20 }, (_, index) => index)
    expect(seededRandom(3).shuffle(list)).not.toEqual(list)
  })

  it('picks from a list and rejects an empty one', () => {
    const random = seededRandom(1)
    expect(['a', 'b']).toContain(random.pick(['a', 'b']))
    expect(() => random.pick([])).toThrow(/empty/)
  })

  it('is true with the given probability', () => {
    const random = seededRandom(9)
    const count = Array.from({ length: 10_000 }, () => random.chance(0.3)).filter(Boolean).length
    expect(Math.abs(count - 3_000)).toBeLessThan(200)
    expect(random.chance(0)).toBe(false)
    expect(random.chance(1)).toBe(true)
  })

  it('rejects a seed that is not a safe integer', () => {
    expect(() => seededRandom(0.5)).toThrow(/whole number/)
    expect(() => seededRandom(Number.NaN)).toThrow(/whole number/)
  })
})
