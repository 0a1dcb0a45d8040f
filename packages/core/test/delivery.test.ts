import { describe, expect, test } from 'vitest'
import { FIRST_CYCLE, nextCycle } from '../src/delivery.ts'
import { aCycle, anAttempt } from './fixtures.ts'

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

describe('the cycle of a replay', () => {
  const [older, last] = ['00-a', '00-b']

  test('has the next number and no failures', () => {
    const cycle = aCycle({ number: 4, attempts: 2, history: [anAttempt(), anAttempt()] })
    expect(nextCycle(cycle)).toStrictEqual({ ...FIRST_CYCLE, number: 5 })
  })

  test('keeps the trace of the last run of the cycle before', () => {
    const history = [older, older, last].map((trace) => anAttempt({ trace }))
    expect(nextCycle(aCycle({ number: 1, history, trace: '00-c' })).trace).toBe(last)
  })

  test('keeps an older trace when the last cycle has no failure with a trace', () => {
    for (const history of [[anAttempt()], []])
      expect(nextCycle(aCycle({ history, trace: older })).trace).toBe(older)
  })
})
