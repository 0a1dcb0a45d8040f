import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  growLimit,
  type LimitPolicy,
  type LimitState,
  restartLimit,
  shrinkLimit,
  startLimit,
} from '../src/limit.ts'

/** least <= start <= most */
const anyPolicy: fc.Arbitrary<LimitPolicy> = fc
  .tuple(
    fc.array(fc.integer({ min: 1, max: 100 }), { minLength: 3, maxLength: 3 }),
    fc.double({ min: 0.1, max: 0.95, noNaN: true }),
  )
  .map(([values, decrease]) => {
    const [min = 1, start = 1, max = 1] = values.toSorted((a, b) => a - b)
    return { min, start, max, decrease }
  })

type Happening =
  | { readonly kind: 'grow'; readonly count: number; readonly afterMs: number }
  | {
      readonly kind: 'shrink'
      readonly ageMs: number
      readonly inFlight: number
      readonly afterMs: number
    }
  | { readonly kind: 'restart'; readonly afterMs: number }

const afterMs = fc.integer({ min: 1, max: 1_000 })
const story: fc.Arbitrary<Happening[]> = fc.array(
  fc.oneof(
    fc.record({
      kind: fc.constant('grow' as const),
      count: fc.integer({ min: 1, max: 200 }),
      afterMs,
    }),
    fc.record({
      kind: fc.constant('shrink' as const),
      ageMs: fc.nat({ max: 2_000 }),
      inFlight: fc.integer({ min: 1, max: 150 }),
      afterMs,
    }),
    fc.record({ kind: fc.constant('restart' as const), afterMs }),
  ),
  { minLength: 1, maxLength: 80 },
)

function step(policy: LimitPolicy, state: LimitState, happening: Happening, now: number) {
  switch (happening.kind) {
    case 'grow':
      return growLimit(policy, state, happening.count)
    case 'shrink':
      return shrinkLimit(policy, state, {
        startedAt: now - happening.ageMs,
        inFlight: happening.inFlight,
        now,
      })
    case 'restart':
      return restartLimit(policy, state, now)
  }
}

function live(policy: LimitPolicy, happenings: readonly Happening[]) {
  let now = 1_700_000_000_000
  let before = startLimit(policy)
  return happenings.map((happening) => {
    now += happening.afterMs
    const after = step(policy, before, happening, now)
    const moment = { happening, before, after, now }
    before = after
    return moment
  })
}

describe('the limit, whatever happens', () => {
  test('is a whole number between the least and the most, and so is its threshold', () => {
    fc.assert(
      fc.property(anyPolicy, story, (policy, happenings) => {
        const states = [startLimit(policy), ...live(policy, happenings).map(({ after }) => after)]
        for (const { limit, threshold, credit } of states) {
          for (const value of [limit, threshold]) {
            expect(Number.isInteger(value)).toBe(true)
            expect(value).toBeGreaterThanOrEqual(policy.min)
            expect(value).toBeLessThanOrEqual(policy.max)
          }
          expect(credit).toBeGreaterThanOrEqual(0)
        }
      }),
    )
  })

  test('never falls on success and never rises on trouble', () => {
    fc.assert(
      fc.property(anyPolicy, story, (policy, happenings) => {
        for (const { happening, before, after } of live(policy, happenings)) {
          const direction = happening.kind === 'grow' ? 1 : -1
          expect((after.limit - before.limit) * direction).toBeGreaterThanOrEqual(0)
        }
      }),
    )
  })

  test('rises to its threshold at most, and by one at most once it is there', () => {
    fc.assert(
      fc.property(anyPolicy, story, (policy, happenings) => {
        for (const { happening, before, after } of live(policy, happenings)) {
          if (happening.kind !== 'grow') continue
          expect(after.limit).toBeLessThanOrEqual(Math.max(before.threshold, before.limit + 1))
        }
      }),
    )
  })

  test('shrinks once for all attempts that were running together', () => {
    fc.assert(
      fc.property(
        anyPolicy,
        fc.array(fc.integer({ min: 1, max: 1_000 }), { minLength: 2, maxLength: 50 }),
        (policy, ages) => {
          const now = 1_700_000_000_000
          let state = { ...startLimit(policy), limit: policy.max }
          const limits = new Set<number>()
          for (const [index, age] of ages.entries()) {
            const failed = { startedAt: now - age, inFlight: ages.length, now: now + index }
            state = shrinkLimit(policy, state, failed)
            limits.add(state.limit)
          }
          expect(limits.size).toBe(1)
        },
      ),
    )
  })

  test('behaves the same after a round trip through JSON', () => {
    fc.assert(
      fc.property(anyPolicy, story, (policy, happenings) => {
        for (const { happening, before, after, now } of live(policy, happenings)) {
          const restored = JSON.parse(JSON.stringify(before)) as LimitState
          expect(restored).toEqual(before)
          expect(step(policy, restored, happening, now)).toEqual(after)
        }
      }),
    )
  })
})
