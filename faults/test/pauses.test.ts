import { describe, expect, it } from 'vitest'
import { areStuck } from '../src/catalog/drills/pauses.ts'

const handledAt = new Map([
  ['soon', 1_010],
  ['late', 5_000],
])
const unconfirmed = (...keys: readonly string[]) => keys.map((key) => ({ key, publishedAt: 1_000 }))

describe('consumers', () => {
  it('are stuck when a message without a confirmation was handled late or never', () => {
    expect(areStuck(unconfirmed('soon', 'late'), handledAt)).toBe(true)
    expect(areStuck(unconfirmed('soon', 'never'), handledAt)).toBe(true)
  })

  it('are not stuck when they handled all messages: then a confirmation is late', () => {
    expect(areStuck(unconfirmed('soon'), handledAt)).toBe(false)
    expect(areStuck([], handledAt)).toBe(false)
  })
})
