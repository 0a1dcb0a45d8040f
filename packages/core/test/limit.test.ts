import { describe, expect, test } from 'vitest'
import {
  growLimit,
  type LimitPolicy,
  type LimitState,
  lateLimit,
  quickLimit,
  restartLimit,
  shrinkLimit,
  startLimit,
} from '../src/limit.ts'

const POLICY: LimitPolicy = { start: 10, min: 2, max: 50, decrease: 0.7 }

const state = (fields: Partial<LimitState> = {}): LimitState => ({
  limit: 10,
  credit: 0,
  threshold: 10,
  shrunkAt: 1_000,
  ...fields,
})

describe('a new limit', () => {
  test('begins where the policy says, in slow start up to the most', () => {
    expect(startLimit(POLICY)).toEqual({ limit: 10, credit: 0, threshold: 50, shrunkAt: 0 })
  })

  test('begins no higher than the most', () => {
    expect(startLimit({ ...POLICY, start: 51 }).limit).toBe(50)
    expect(startLimit({ ...POLICY, start: 50 }).limit).toBe(50)
    expect(startLimit({ ...POLICY, start: 49 }).limit).toBe(49)
  })

  test('begins no lower than the least', () => {
    expect(startLimit({ ...POLICY, start: 1 }).limit).toBe(2)
    expect(startLimit({ ...POLICY, start: 2 }).limit).toBe(2)
    expect(startLimit({ ...POLICY, start: 3 }).limit).toBe(3)
  })
})

describe('a limit in slow start', () => {
  test('grows by one for each success', () => {
    const slow = state({ limit: 10, threshold: 40, credit: 3 })
    expect(growLimit(POLICY, slow, 1)).toEqual({ ...slow, limit: 11 })
    expect(growLimit(POLICY, slow, 7)).toEqual({ ...slow, limit: 17 })
  })

  test('stops at its threshold', () => {
    const slow = state({ limit: 38, threshold: 40 })
    expect(growLimit(POLICY, slow, 2).limit).toBe(40)
    expect(growLimit(POLICY, slow, 3).limit).toBe(40)
    expect(growLimit(POLICY, state({ limit: 39, threshold: 40 }), 5)).toEqual(
      state({ limit: 40, threshold: 40 }),
    )
  })

  test('stops at the most, also with a threshold from a wider policy', () => {
    expect(growLimit(POLICY, state({ limit: 48, threshold: 60 }), 5).limit).toBe(50)
  })
})

describe('a limit above its threshold', () => {
  test('grows by one for as many successes as it is high', () => {
    expect(growLimit(POLICY, state({ credit: 0 }), 9)).toEqual(state({ credit: 9 }))
    expect(growLimit(POLICY, state({ credit: 9 }), 1)).toEqual(state({ limit: 11, credit: 0 }))
    expect(growLimit(POLICY, state({ credit: 0 }), 10)).toEqual(state({ limit: 11, credit: 0 }))
  })

  test('keeps the successes that were left over', () => {
    expect(growLimit(POLICY, state({ credit: 8 }), 5)).toEqual(state({ limit: 11, credit: 3 }))
  })

  test('needs one more success for each step', () => {
    let current = state()
    let successes = 0
    while (current.limit < 13) {
      current = growLimit(POLICY, current, 1)
      successes += 1
    }
    expect(successes).toBe(10 + 11 + 12)
  })

  test('stays at the most', () => {
    expect(growLimit(POLICY, state({ limit: 49, credit: 48 }), 1)).toEqual(
      state({ limit: 50, credit: 0 }),
    )
    const full = state({ limit: 50, credit: 49 })
    expect(growLimit(POLICY, full, 100)).toBe(full)
    const over = state({ limit: 51, credit: 49 })
    expect(growLimit(POLICY, over, 100)).toBe(over)
  })
})

describe('trouble', () => {
  const trouble = (fields: Partial<{ startedAt: number; inFlight: number; now: number }> = {}) => ({
    startedAt: 2_000,
    inFlight: 100,
    now: 3_000,
    ...fields,
  })

  test('shrinks the limit by its factor, in whole attempts, and ends slow start', () => {
    expect(shrinkLimit(POLICY, state({ limit: 20, credit: 5, threshold: 50 }), trouble())).toEqual({
      limit: 14,
      credit: 0,
      threshold: 14,
      shrunkAt: 3_000,
    })
    expect(shrinkLimit(POLICY, state({ limit: 9 }), trouble()).limit).toBe(6)
    expect(shrinkLimit({ ...POLICY, decrease: 0.5 }, state({ limit: 9 }), trouble()).limit).toBe(4)
  })

  test('starts from what was really in flight when that is less than the limit', () => {
    expect(shrinkLimit(POLICY, state({ limit: 40 }), trouble({ inFlight: 10 })).limit).toBe(7)
    expect(shrinkLimit(POLICY, state({ limit: 10 }), trouble({ inFlight: 11 })).limit).toBe(7)
  })

  test('never shrinks the limit below the least', () => {
    expect(shrinkLimit(POLICY, state({ limit: 4 }), trouble()).limit).toBe(2)
    expect(shrinkLimit(POLICY, state({ limit: 2 }), trouble())).toEqual({
      limit: 2,
      credit: 0,
      threshold: 2,
      shrunkAt: 3_000,
    })
    expect(shrinkLimit(POLICY, state({ limit: 40 }), trouble({ inFlight: 1 })).limit).toBe(2)
  })

  test('is answered once: attempts that began before the limit shrank change nothing', () => {
    const shrunk = state({ limit: 20, shrunkAt: 2_500 })
    expect(shrinkLimit(POLICY, shrunk, trouble({ startedAt: 2_499 }))).toBe(shrunk)
    expect(shrinkLimit(POLICY, shrunk, trouble({ startedAt: 2_500 }))).toBe(shrunk)
    expect(shrinkLimit(POLICY, shrunk, trouble({ startedAt: 2_501 })).limit).toBe(14)
  })
})

describe('a success that came late', () => {
  const late = (fields: Partial<Parameters<typeof lateLimit>[2]> = {}) => ({
    count: 1,
    saturated: true,
    startedAt: 2_000,
    inFlight: 100,
    now: 3_000,
    ...fields,
  })

  test('is trouble as long as there is room below', () => {
    expect(lateLimit(POLICY, state({ limit: 20 }), late())).toEqual({
      limit: 14,
      credit: 0,
      threshold: 14,
      shrunkAt: 3_000,
    })
    expect(lateLimit(POLICY, state({ limit: 3 }), late()).limit).toBe(2)
    const answered = state({ limit: 20, shrunkAt: 2_000 })
    expect(lateLimit(POLICY, answered, late())).toBe(answered)
  })

  test('at the least is the nature of the handler, and the limit may grow again', () => {
    const least = state({ limit: 2, threshold: 2, credit: 0 })
    expect(lateLimit(POLICY, least, late())).toEqual({ ...least, credit: 1, isSlow: true })
    expect(lateLimit(POLICY, least, late({ count: 2 }))).toEqual({
      ...least,
      limit: 3,
      isSlow: true,
    })
    expect(lateLimit(POLICY, least, late({ saturated: false, count: 2 }))).toEqual({
      ...least,
      isSlow: true,
    })
  })

  test('of a slow handler no longer shrinks the limit, however high', () => {
    const slow = state({ limit: 20, threshold: 50, isSlow: true })
    expect(lateLimit(POLICY, slow, late({ count: 3 }))).toEqual({ ...slow, limit: 23 })
    expect(lateLimit(POLICY, slow, late({ saturated: false }))).toEqual(slow)
  })
})

describe('successes in time', () => {
  test('let the limit grow when it was what held more back', () => {
    const slow = state({ limit: 20, threshold: 50 })
    expect(quickLimit(POLICY, slow, { count: 3, saturated: true })).toEqual({ ...slow, limit: 23 })
    expect(quickLimit(POLICY, slow, { count: 3, saturated: false })).toEqual(slow)
  })

  test('show that the handler is quick after all', () => {
    const quick = state({ limit: 20 })
    for (const saturated of [true, false]) {
      const after = quickLimit(POLICY, { ...quick, isSlow: true }, { count: 1, saturated })
      expect(after).toEqual(saturated ? { ...quick, credit: 1 } : quick)
      expect('isSlow' in after).toBe(false)
    }
  })
})

describe('trouble of a slow handler', () => {
  test('shrinks the limit, and lateness means something again', () => {
    const slow = state({ limit: 20, isSlow: true })
    const failed = { startedAt: 2_000, inFlight: 20, now: 3_000 }
    expect('isSlow' in shrinkLimit(POLICY, slow, failed)).toBe(false)
    expect('isSlow' in restartLimit(POLICY, slow, 3_000)).toBe(false)
  })
})

describe('a limit after an outage', () => {
  test('restarts at the least, in slow start up to half of what worked before', () => {
    expect(restartLimit(POLICY, state({ limit: 31, credit: 4 }), 7_000)).toEqual({
      limit: 2,
      credit: 0,
      threshold: 15,
      shrunkAt: 7_000,
    })
  })

  test('has a threshold no lower than the least', () => {
    expect(restartLimit(POLICY, state({ limit: 3 }), 7_000).threshold).toBe(2)
    expect(restartLimit(POLICY, state({ limit: 5 }), 7_000).threshold).toBe(2)
    expect(restartLimit(POLICY, state({ limit: 6 }), 7_000).threshold).toBe(3)
  })

  test('climbs quickly to its threshold and carefully from there', () => {
    const restarted = restartLimit(POLICY, state({ limit: 20 }), 7_000)
    const quick = growLimit(POLICY, restarted, 8)
    expect(quick.limit).toBe(10)
    expect(growLimit(POLICY, quick, 9).limit).toBe(10)
    expect(growLimit(POLICY, quick, 10).limit).toBe(11)
  })
})
