import { describe, expect, test } from 'vitest'
import { ALREADY_HANDLED, SETTLE } from '../src/decision.ts'
import { FIRST_CYCLE } from '../src/delivery.ts'
import { NO_EVENTS } from '../src/events.ts'
import { FAILURE_CLASSES } from '../src/failure.ts'

describe('values that everybody shares', () => {
  test('no events is an empty list that nobody can add to', () => {
    expect(NO_EVENTS).toEqual([])
    expect(Object.isFrozen(NO_EVENTS)).toBe(true)
  })

  test('a settled delivery says whether it was handled now or before', () => {
    expect(SETTLE).toEqual({ kind: 'settle', reason: 'handled' })
    expect(ALREADY_HANDLED).toEqual({ kind: 'settle', reason: 'already_handled' })
    expect(Object.isFrozen(SETTLE)).toBe(true)
    expect(Object.isFrozen(ALREADY_HANDLED)).toBe(true)
  })

  test('the first cycle has nothing in it and cannot be changed', () => {
    expect(FIRST_CYCLE).toEqual({
      number: 1,
      attempts: 0,
      firstFailedAt: undefined,
      lastDelayMs: 0,
      notBefore: undefined,
      history: [],
    })
    expect(Object.isFrozen(FIRST_CYCLE)).toBe(true)
    expect(Object.isFrozen(FIRST_CYCLE.history)).toBe(true)
  })

  test('the failure classes are five', () => {
    expect(FAILURE_CLASSES).toEqual(['transient', 'schema', 'business', 'integration', 'unknown'])
  })
})
