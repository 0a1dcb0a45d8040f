import { describe, expect, it } from 'vitest'
import { areStuck } from '../src/catalog/drills/pauses.ts'

const handledAt = new Map([
  ['soon', 1_010],
  ['late', 5_000],
])
const unproven = (...keys: readonly string[]) => keys.map((key) => ({ key, publishedAt: 1_000 }))

describe('consumers', () => {
  it('are stuck when one that is without a proof was handled late, or never', () => {
    expect(areStuck(unproven('soon', 'late'), handledAt)).toBe(true)
    expect(areStuck(unproven('soon', 'never'), handledAt)).toBe(true)
  })

  it('are not when they had handled all of them: then a proof is late', () => {
    expect(areStuck(unproven('soon'), handledAt)).toBe(false)
    expect(areStuck([], handledAt)).toBe(false)
  })
})
