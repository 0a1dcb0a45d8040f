import { describe, expect, test } from 'vitest'
import { FIRST_CYCLE } from '../src/delivery.ts'

describe('the first failure cycle', () => {
  test('is number one and empty', () => {
    expect(FIRST_CYCLE).toEqual({
      number: 1,
      attempts: 0,
      runs: 0,
      unproven: { runs: 0, waitedMs: 0 },
      firstFailedAt: undefined,
      lastDelayMs: 0,
      remainingMs: 0,
      history: [],
    })
  })

  test('is shared by all messages, so it is frozen', () => {
    expect(Object.isFrozen(FIRST_CYCLE)).toBe(true)
    expect(Object.isFrozen(FIRST_CYCLE.history)).toBe(true)
    expect(Object.isFrozen(FIRST_CYCLE.unproven)).toBe(true)
  })
})
