import { describe, expect, test } from 'vitest'
import { ALREADY_HANDLED, SETTLE } from '../src/decision.ts'
import { NO_EVENTS } from '../src/events.ts'
import { FAILURE_CLASSES } from '../src/failure.ts'

describe('shared values', () => {
  test('an empty list of events is frozen', () => {
    expect(NO_EVENTS).toEqual([])
    expect(Object.isFrozen(NO_EVENTS)).toBe(true)
  })

  test('a settled delivery contains whether it was handled now or before', () => {
    expect(SETTLE).toEqual({ kind: 'settle', reason: 'handled' })
    expect(ALREADY_HANDLED).toEqual({ kind: 'settle', reason: 'already_handled' })
    expect(Object.isFrozen(SETTLE)).toBe(true)
    expect(Object.isFrozen(ALREADY_HANDLED)).toBe(true)
  })

  test('there are five failure classes', () => {
    expect(FAILURE_CLASSES).toEqual(['transient', 'schema', 'business', 'integration', 'unknown'])
  })
})
