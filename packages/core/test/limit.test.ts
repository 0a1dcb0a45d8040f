import { describe, expect, test } from 'vitest'
import {
  failedLimit,
  growLimit,
  type LimitPolicy,
  type LimitState,
  lateLimit,
  quickLimit,
  restartLimit,
  shrinkLimit,
  startLimit,
} from '../src/limit.ts'

const HOUR = 3_600_000

const POLICY: LimitPolicy = { start: 10, min: 2, max: 50, decrease: 0.7 }

const state = (fields: Partial<LimitState> = {}): LimitState => ({
  limit: 10,
  credit: 0,
  threshold: 10,
  shrunkAt: 1_000,
  ...fields,
})

describe('a new limit', () => {
  test('starts at the value of the policy, in slow start up to the maximum', () => {
    expect(startLimit(POLICY)).toEqual({
      limit: 10,
      credit: 0,
      threshold: 50,
      shrunkAt: 0,
      lateSince: 0,
    })
  })

  test('starts no higher than the maximum', () => {
    expect(startLimit({ ...POLICY, start: 51 }).limit).toBe(50)
    expect(startLimit({ ...POLICY, start: 50 }).limit).toBe(50)
    expect(startLimit({ ...POLICY, start: 49 }).limit).toBe(49)
  })

  test('starts no lower than the minimum', () => {
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

  test('stops at the maximum, also with a threshold from a larger policy', () => {
    expect(growLimit(POLICY, state({ limit: 48, threshold: 60 }), 5).limit).toBe(50)
  })
})

describe('a limit above its threshold', () => {
  test('grows by one after as many successes as its value', () => {
    expect(growLimit(POLICY, state({ credit: 0 }), 9)).toEqual(state({ credit: 9 }))
    expect(growLimit(POLICY, state({ credit: 9 }), 1)).toEqual(state({ limit: 11, credit: 0 }))
    expect(growLimit(POLICY, state({ credit: 0 }), 10)).toEqual(state({ limit: 11, credit: 0 }))
  })

  test('keeps the remaining successes', () => {
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

  test('stays at the maximum', () => {
    expect(growLimit(POLICY, state({ limit: 49, credit: 48 }), 1)).toEqual(
      state({ limit: 50, credit: 0 }),
    )
    const full = state({ limit: 50, credit: 49 })
    expect(growLimit(POLICY, full, 100)).toBe(full)
    const over = state({ limit: 51, credit: 49 })
    expect(growLimit(POLICY, over, 100)).toBe(over)
  })
})

describe('overload', () => {
  const overload = (
    fields: Partial<{ startedAt: number; inFlight: number; now: number }> = {},
  ) => ({
    startedAt: 2_000,
    inFlight: 100,
    now: 3_000,
    ...fields,
  })

  test('shrinks the limit by its factor, in whole attempts, and ends slow start', () => {
    expect(shrinkLimit(POLICY, state({ limit: 20, credit: 5, threshold: 50 }), overload())).toEqual(
      {
        limit: 14,
        credit: 0,
        threshold: 14,
        shrunkAt: 3_000,
      },
    )
    expect(shrinkLimit(POLICY, state({ limit: 9 }), overload()).limit).toBe(6)
    expect(shrinkLimit({ ...POLICY, decrease: 0.5 }, state({ limit: 9 }), overload()).limit).toBe(4)
  })

  test('starts from the attempts really in flight when they are fewer than the limit', () => {
    expect(shrinkLimit(POLICY, state({ limit: 40 }), overload({ inFlight: 10 })).limit).toBe(7)
    expect(shrinkLimit(POLICY, state({ limit: 10 }), overload({ inFlight: 11 })).limit).toBe(7)
  })

  test('never shrinks the limit below the minimum', () => {
    expect(shrinkLimit(POLICY, state({ limit: 4 }), overload()).limit).toBe(2)
    expect(shrinkLimit(POLICY, state({ limit: 2 }), overload())).toEqual({
      limit: 2,
      credit: 0,
      threshold: 2,
      shrunkAt: 3_000,
    })
    expect(shrinkLimit(POLICY, state({ limit: 40 }), overload({ inFlight: 1 })).limit).toBe(2)
  })

  test('counts once: attempts that began before the limit shrank change nothing', () => {
    const shrunk = state({ limit: 20, shrunkAt: 2_500 })
    expect(shrinkLimit(POLICY, shrunk, overload({ startedAt: 2_499 }))).toBe(shrunk)
    expect(shrinkLimit(POLICY, shrunk, overload({ startedAt: 2_500 }))).toBe(shrunk)
    expect(shrinkLimit(POLICY, shrunk, overload({ startedAt: 2_501 })).limit).toBe(14)
  })
})

describe('a late success', () => {
  const late = (fields: Partial<Parameters<typeof lateLimit>[2]> = {}) => ({
    count: 1,
    saturated: true,
    startedAt: HOUR,
    inFlight: 100,
    now: HOUR + 1_000,
    ...fields,
  })

  test('is overload after a success in time', () => {
    expect(lateLimit(POLICY, state({ limit: 20 }), late())).toEqual({
      limit: 14,
      credit: 0,
      threshold: 14,
      shrunkAt: HOUR + 1_000,
      lateSince: HOUR + 1_000,
    })
    expect(lateLimit(POLICY, state({ limit: 3 }), late()).limit).toBe(2)
  })

  test('that began before the limit shrank changes no limit', () => {
    const shrunk = state({ limit: 20, shrunkAt: HOUR })
    expect(lateLimit(POLICY, shrunk, late())).toEqual({ ...shrunk, lateSince: HOUR + 1_000 })
  })

  test('does not grow the limit at the minimum: other processes may send too much', () => {
    let current = state({ limit: 2, threshold: 10 })
    for (let at = HOUR; at < 2 * HOUR; at += 60_000) {
      current = lateLimit(POLICY, current, late({ startedAt: at, now: at + 1_000, count: 9 }))
      expect(current.limit).toBe(2)
    }
    expect(growLimit(POLICY, current, 1).limit).toBe(2)
    expect(growLimit(POLICY, current, 2).limit).toBe(3)
  })

  test('is no overload when none was in time since the start: the handler is slow', () => {
    const started = startLimit(POLICY)
    const grown = lateLimit(POLICY, started, late({ count: 3 }))
    expect(grown).toEqual({ ...started, limit: 13, grewLateAt: HOUR + 1_000 })
    expect(lateLimit(POLICY, grown, late({ saturated: false }))).toEqual(grown)
  })

  test('is no overload when none was in time for an hour: the handler became slow', () => {
    const since = (lateSince: number) => state({ limit: 20, threshold: 50, lateSince })
    const now = 2 * HOUR
    expect(lateLimit(POLICY, since(HOUR + 1), late({ startedAt: now - 1, now })).limit).toBe(14)
    expect(lateLimit(POLICY, since(HOUR), late({ startedAt: now - 1, now })).limit).toBe(21)
  })

  test('records only a growth that changed the limit', () => {
    const most = state({ limit: 50, threshold: 50, lateSince: 0 })
    expect(lateLimit(POLICY, most, late({ count: 3 }))).toEqual(most)
  })

  test('keeps the time since which all were late', () => {
    const first = lateLimit(POLICY, state({ limit: 20 }), late())
    const second = lateLimit(POLICY, first, late({ startedAt: HOUR + 1_001, now: HOUR + 9_000 }))
    expect(second).toMatchObject({ limit: 9, lateSince: HOUR + 1_000 })
  })
})

describe('a failure', () => {
  const GREW_AT = 2 * HOUR
  const slow = state({ limit: 20, shrunkAt: 0, lateSince: 0, grewLateAt: GREW_AT })
  const failed = (startedAt: number, now: number) => ({ startedAt, inFlight: 20, now })

  test('shrinks the limit like overload', () => {
    const quick = state({ limit: 20, shrunkAt: 0 })
    const seen = failed(GREW_AT, GREW_AT + 1_000)
    expect(failedLimit(POLICY, quick, seen)).toEqual(shrinkLimit(POLICY, quick, seen))
  })

  test('right after the limit grew shows that the handler is not slow', () => {
    for (const startedAt of [GREW_AT, GREW_AT + 1_000]) {
      const now = startedAt + 1_000
      const after = failedLimit(POLICY, slow, failed(startedAt, now))
      expect(after).toMatchObject({ limit: 14, lateSince: now })
    }
  })

  test('of an attempt that began earlier, or later than its own duration, does not', () => {
    const before = failedLimit(POLICY, slow, failed(GREW_AT - 1, GREW_AT + 1_000))
    expect(before).toMatchObject({ limit: 14, lateSince: 0 })
    const after = failedLimit(POLICY, slow, failed(GREW_AT + 1_001, GREW_AT + 2_001))
    expect(after).toMatchObject({ limit: 14, lateSince: 0 })
  })

  test('counts even if an earlier one has already shrunk the limit', () => {
    const shrunk = { ...slow, shrunkAt: GREW_AT + 500 }
    const now = GREW_AT + 1_400
    expect(failedLimit(POLICY, shrunk, failed(GREW_AT + 400, now))).toEqual({
      ...shrunk,
      lateSince: now,
    })
  })
})

describe('successes in time', () => {
  test('grow the limit when it prevented more attempts', () => {
    const slow = state({ limit: 20, threshold: 50 })
    expect(quickLimit(POLICY, slow, { count: 3, saturated: true })).toEqual({ ...slow, limit: 23 })
    expect(quickLimit(POLICY, slow, { count: 3, saturated: false })).toEqual(slow)
  })

  test('show that the handler is not slow', () => {
    const quick = state({ limit: 20 })
    for (const saturated of [true, false]) {
      const after = quickLimit(POLICY, { ...quick, lateSince: 0 }, { count: 1, saturated })
      expect(after).toEqual(saturated ? { ...quick, credit: 1 } : quick)
      expect('lateSince' in after).toBe(false)
    }
  })
})

describe('a failure with a slow handler', () => {
  test('shrinks the limit, and the handler stays slow', () => {
    const slow = state({ limit: 20, lateSince: 0 })
    const failed = { startedAt: 2_000, inFlight: 20, now: 3_000 }
    expect(shrinkLimit(POLICY, slow, failed)).toMatchObject({ limit: 14, lateSince: 0 })
    expect(restartLimit(POLICY, slow, 3_000)).toMatchObject({ limit: 2, lateSince: 0 })
  })
})

describe('a limit after an outage', () => {
  test('restarts at the minimum, in slow start up to half of the last good limit', () => {
    expect(restartLimit(POLICY, state({ limit: 31, credit: 4 }), 7_000)).toEqual({
      limit: 2,
      credit: 0,
      threshold: 15,
      shrunkAt: 7_000,
    })
  })

  test('has a threshold no lower than the minimum', () => {
    expect(restartLimit(POLICY, state({ limit: 3 }), 7_000).threshold).toBe(2)
    expect(restartLimit(POLICY, state({ limit: 5 }), 7_000).threshold).toBe(2)
    expect(restartLimit(POLICY, state({ limit: 6 }), 7_000).threshold).toBe(3)
  })

  test('grows quickly to its threshold and slowly from there', () => {
    const restarted = restartLimit(POLICY, state({ limit: 20 }), 7_000)
    const quick = growLimit(POLICY, restarted, 8)
    expect(quick.limit).toBe(10)
    expect(growLimit(POLICY, quick, 9).limit).toBe(10)
    expect(growLimit(POLICY, quick, 10).limit).toBe(11)
  })
})
