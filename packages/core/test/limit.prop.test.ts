import fc from 'fast-check'
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
import { transitionsOf } from './fixtures.ts'

/** min <= start <= max */
const anyPolicy: fc.Arbitrary<LimitPolicy> = fc
  .tuple(
    fc.array(fc.integer({ min: 1, max: 100 }), { minLength: 3, maxLength: 3 }),
    fc.double({ min: 0.1, max: 0.95, noNaN: true }),
  )
  .map(([values, decrease]) => {
    const [min = 1, start = 1, max = 1] = values.toSorted((a, b) => a - b)
    return { min, start, max, decrease }
  })

type Input =
  | { readonly kind: 'grow'; readonly count: number; readonly afterMs: number }
  | {
      readonly kind: 'shrink'
      readonly ageMs: number
      readonly inFlight: number
      readonly afterMs: number
    }
  | { readonly kind: 'restart'; readonly afterMs: number }
  | {
      readonly kind: 'late' | 'quick'
      readonly count: number
      readonly saturated: boolean
      readonly afterMs: number
    }

const afterMs = fc.integer({ min: 1, max: 1_000 })
const anyInputs: fc.Arbitrary<Input[]> = fc.array(
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
    fc.record({
      kind: fc.constantFrom('late' as const, 'quick' as const),
      count: fc.integer({ min: 1, max: 200 }),
      saturated: fc.boolean(),
      afterMs,
    }),
  ),
  { minLength: 1, maxLength: 80 },
)

function step(policy: LimitPolicy, state: LimitState, input: Input, now: number) {
  switch (input.kind) {
    case 'grow':
      return growLimit(policy, state, input.count)
    case 'shrink':
      return shrinkLimit(policy, state, {
        startedAt: now - input.ageMs,
        inFlight: input.inFlight,
        now,
      })
    case 'restart':
      return restartLimit(policy, state, now)
    case 'late':
      return lateLimit(policy, state, { ...input, startedAt: now - 1, inFlight: 1, now })
    case 'quick':
      return quickLimit(policy, state, input)
  }
}

function applyAll(policy: LimitPolicy, inputs: readonly Input[]) {
  return transitionsOf<Input, LimitState>(startLimit(policy), inputs, (state, input, now) =>
    step(policy, state, input, now),
  )
}

describe('the limit, for any sequence', () => {
  test('is a whole number between the minimum and the maximum, and so is its threshold', () => {
    fc.assert(
      fc.property(anyPolicy, anyInputs, (policy, inputs) => {
        const states = [startLimit(policy), ...applyAll(policy, inputs).map(({ after }) => after)]
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

  test('never decreases on success and never increases on overload', () => {
    fc.assert(
      fc.property(anyPolicy, anyInputs, (policy, inputs) => {
        for (const { input, before, after } of applyAll(policy, inputs)) {
          if (input.kind === 'late') continue
          const direction = input.kind === 'grow' || input.kind === 'quick' ? 1 : -1
          expect((after.limit - before.limit) * direction).toBeGreaterThanOrEqual(0)
        }
      }),
    )
  })

  test('grows to its threshold at most, and by one at most from there', () => {
    fc.assert(
      fc.property(anyPolicy, anyInputs, (policy, inputs) => {
        for (const { input, before, after } of applyAll(policy, inputs)) {
          if (input.kind === 'shrink' || input.kind === 'restart') continue
          expect(after.limit).toBeLessThanOrEqual(Math.max(before.threshold, before.limit + 1))
        }
      }),
    )
  })

  test('never increases on a late success after one in time', () => {
    fc.assert(
      fc.property(anyPolicy, anyInputs, (policy, inputs) => {
        // All of it takes less than the hour after which the handler counts as slow.
        let wasInTime = false
        for (const { input, before, after } of applyAll(policy, inputs)) {
          if (input.kind === 'quick') wasInTime = true
          if (input.kind !== 'late' || !wasInTime) continue
          expect(after.limit).toBeLessThanOrEqual(before.limit)
        }
      }),
    )
  })

  test('shrinks once for all attempts that ran together', () => {
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
      fc.property(anyPolicy, anyInputs, (policy, inputs) => {
        for (const { input, before, after, now } of applyAll(policy, inputs)) {
          const restored = JSON.parse(JSON.stringify(before)) as LimitState
          expect(restored).toEqual(before)
          expect(step(policy, restored, input, now)).toEqual(after)
        }
      }),
    )
  })
})
