import { describe, expect, test } from 'vitest'
import {
  hasServedOthers,
  isSick,
  NO_OUTAGE,
  type OutageHalf,
  type OutagePolicy,
  type OutageState,
  outageFailed,
  outageHandled,
} from '../src/outage.ts'

const POLICY: OutagePolicy = { ratio: 0.25, failures: 3, windowMs: 1_000 }

const half = (fields: Partial<OutageHalf> = {}): OutageHalf => ({
  handled: 0,
  surplus: 0,
  failed: [],
  ...fields,
})

const state = (fields: Partial<OutageState> = {}): OutageState => ({
  from: 10_000,
  now: half(),
  before: half(),
  handledAt: 0,
  ...fields,
})

const ids = (count: number) => Array.from({ length: count }, (_, index) => `m${index}`)

/** Returns whether a dependency with these two halves is unhealthy. */
const isUnhealthy = (now: Partial<OutageHalf>, before: Partial<OutageHalf> = {}) =>
  isSick(POLICY, state({ now: half(now), before: half(before) }), 10_000)

describe('the initial value', () => {
  test('is frozen', () => {
    expect(NO_OUTAGE).toEqual(state({ from: 0 }))
    for (const part of [
      NO_OUTAGE,
      NO_OUTAGE.now,
      NO_OUTAGE.before,
      NO_OUTAGE.now.failed,
      NO_OUTAGE.before.failed,
    ]) {
      expect(Object.isFrozen(part)).toBe(true)
    }
  })

  test('is healthy', () => {
    expect(isSick(POLICY, NO_OUTAGE, 0)).toBe(false)
    expect(isSick(POLICY, NO_OUTAGE, 1e15)).toBe(false)
  })
})

describe('what is counted', () => {
  const before = half({ handled: 9, surplus: 8, failed: ['z'] })

  test('adds up the successes, and keeps the last time', () => {
    const from = state({ now: half({ handled: 2, surplus: 1, failed: ['a'] }), before })
    expect(outageHandled(POLICY, from, { count: 3, at: 10_000 }, 10_100)).toEqual({
      ...from,
      now: half({ handled: 5, surplus: 1, failed: ['a'] }),
      handledAt: 10_000,
    })
  })

  test('never moves the last success back', () => {
    const from = state({ handledAt: 9_950 })
    expect(outageHandled(POLICY, from, { count: 1, at: 9_949 }, 10_000).handledAt).toBe(9_950)
    expect(outageHandled(POLICY, from, { count: 1, at: 9_951 }, 10_000).handledAt).toBe(9_951)
  })

  test('keeps each message that failed once', () => {
    const one = outageFailed(POLICY, state({ before }), 'a', 10_000)
    expect(one).toEqual(state({ now: half({ failed: ['a'] }), before }))
    expect(outageFailed(POLICY, one, 'a', 10_001)).toBe(one)
    expect(outageFailed(POLICY, one, 'b', 10_001)).toEqual(
      state({ now: half({ failed: ['a', 'b'] }), before }),
    )
  })

  test('keeps no more than 256 of them, and only counts the others', () => {
    const almost = state({ now: half({ failed: ids(255), surplus: 4 }) })
    const full = outageFailed(POLICY, almost, 'new', 10_000)
    expect(full.now).toEqual(half({ failed: [...ids(255), 'new'], surplus: 4 }))
    expect(outageFailed(POLICY, full, 'm0', 10_000)).toBe(full)
    expect(outageFailed(POLICY, full, 'newer', 10_000)).toEqual({
      ...full,
      now: { ...full.now, surplus: 5 },
    })
  })

  test('does not change the given state', () => {
    const given = state({ now: half({ failed: ['a'] }) })
    const copy = structuredClone(given)
    outageFailed(POLICY, given, 'b', 10_000)
    outageHandled(POLICY, given, { count: 1, at: 10_000 }, 10_000)
    expect(given).toEqual(copy)
  })
})

describe('a dependency', () => {
  test('is unhealthy when enough distinct messages fail, and not one earlier', () => {
    expect(isUnhealthy({ failed: ids(2) })).toBe(false)
    expect(isUnhealthy({ failed: ids(3) })).toBe(true)
  })

  test('is judged by the kept messages and by the messages that are only counted', () => {
    expect(isUnhealthy({ surplus: 1, failed: ['a'] })).toBe(false)
    expect(isUnhealthy({ surplus: 1, failed: ['a', 'b'] })).toBe(true)
    expect(isUnhealthy({ surplus: 2, failed: ['a'] })).toBe(true)
  })

  test('is unhealthy when the share of failures is reached, and healthy below it', () => {
    expect(isUnhealthy({ failed: ids(3), handled: 9 })).toBe(true)
    expect(isUnhealthy({ failed: ids(3), handled: 10 })).toBe(false)
    expect(isUnhealthy({ surplus: 4, handled: 12 })).toBe(true)
    expect(isUnhealthy({ surplus: 4, handled: 13 })).toBe(false)
  })

  test('is judged by both halves of the window', () => {
    expect(isUnhealthy({ failed: ['a', 'b'] }, { failed: ['c'] })).toBe(true)
    expect(isUnhealthy({}, { failed: ids(3) })).toBe(true)
    expect(isUnhealthy({ surplus: 2 }, { surplus: 1 })).toBe(true)
    expect(isUnhealthy({ surplus: 1 }, { surplus: 1 })).toBe(false)
    expect(isUnhealthy({}, { surplus: 3 })).toBe(true)
    expect(isUnhealthy({ surplus: 3, handled: 4 }, { handled: 5 })).toBe(true)
    expect(isUnhealthy({ surplus: 3, handled: 4 }, { handled: 6 })).toBe(false)
    expect(isUnhealthy({ surplus: 3, handled: 5 }, { handled: 5 })).toBe(false)
  })

  test('is healthy when the same messages fail in both halves', () => {
    expect(isUnhealthy({ failed: ['a', 'b'] }, { failed: ['b', 'a'] })).toBe(false)
  })
})

describe('the window', () => {
  const newer = half({ handled: 4, surplus: 6, failed: ['a', 'b', 'c'] })
  const filled = state({
    now: newer,
    before: half({ handled: 7, surplus: 5, failed: ['y', 'z'] }),
    handledAt: 9_000,
  })
  const success = { count: 1, at: 9_000 }

  test('counts in its newer half until that half is full', () => {
    expect(outageHandled(POLICY, filled, success, 10_499)).toEqual({
      ...filled,
      now: { ...newer, handled: 5 },
    })
    expect(outageFailed(POLICY, filled, 'd', 10_499)).toEqual({
      ...filled,
      now: { ...newer, failed: ['a', 'b', 'c', 'd'] },
    })
  })

  /** Expects that each kind of input is the only one in the newer half of the window. */
  const expectEachCounts = (now: number, rest: Omit<OutageState, 'now'>) => {
    const counted = (change: Parameters<typeof half>[0]) => ({ ...rest, now: half(change) })
    expect(outageHandled(POLICY, filled, success, now)).toEqual(counted({ handled: 1 }))
    expect(outageFailed(POLICY, filled, 'a', now)).toEqual(counted({ failed: ['a'] }))
  }

  test.each([10_500, 10_999])(
    'turns after half of its time: at %d the newer half becomes the older one',
    (now) => {
      const turned = { from: now, before: newer, handledAt: 9_000 }
      expectEachCounts(now, turned)
      expect(isSick(POLICY, filled, now)).toBe(true)
    },
  )

  test.each([11_000, 99_000])(
    'drops all counts after its whole time, but not the last success: at %d',
    (now) => {
      const empty = { from: now, before: half(), handledAt: 9_000 }
      expectEachCounts(now, empty)
      expect(isSick(POLICY, filled, now)).toBe(false)
    },
  )

  test('starts again when the clock steps back', () => {
    expect(outageFailed(POLICY, filled, 'd', 10_000).now.failed).toEqual(['a', 'b', 'c', 'd'])
    expect(outageFailed(POLICY, filled, 'd', 9_999)).toEqual(
      state({ from: 9_999, now: half({ failed: ['d'] }), handledAt: 9_000 }),
    )
    expect(isSick(POLICY, filled, 10_000)).toBe(true)
    expect(isSick(POLICY, filled, 9_999)).toBe(false)
  })

  test('drops the older half when it turns twice', () => {
    const once = outageFailed(POLICY, filled, 'd', 10_500)
    expect(outageHandled(POLICY, once, success, 11_000)).toEqual(
      state({
        from: 11_000,
        now: half({ handled: 1 }),
        before: half({ failed: ['d'] }),
        handledAt: 9_000,
      }),
    )
  })
})

describe('the proof that the dependency served another message while this one waited', () => {
  test('is a success after the wait began', () => {
    const served = state({ handledAt: 9_500 })
    expect(hasServedOthers(served, 499, 10_000)).toBe(false)
    expect(hasServedOthers(served, 500, 10_000)).toBe(false)
    expect(hasServedOthers(served, 501, 10_000)).toBe(true)
  })

  test('is missing when no message was ever served', () => {
    expect(hasServedOthers(NO_OUTAGE, 10_000, 10_000)).toBe(false)
  })

  test('is missing when the success lies in the future of another clock', () => {
    const served = state({ handledAt: 10_001 })
    expect(hasServedOthers(served, 500, 10_000)).toBe(false)
    expect(hasServedOthers(served, 500, 10_001)).toBe(true)
  })

  test('is missing when there was no wait', () => {
    expect(hasServedOthers(state({ handledAt: 10_000 }), 0, 10_000)).toBe(false)
  })
})
