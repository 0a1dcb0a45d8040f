import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  hasServedOthers,
  isSick,
  NO_OUTAGE,
  type OutagePolicy,
  type OutageState,
  outageHandled,
  outageUnexplained,
  outageUnreachable,
} from '../src/outage.ts'
import { NOW, transitionsOf } from './fixtures.ts'

const anyPolicy: fc.Arbitrary<OutagePolicy> = fc.record({
  ratio: fc.double({ min: 0.01, max: 1, noNaN: true }),
  failures: fc.integer({ min: 2, max: 200 }),
  windowMs: fc.integer({ min: 100, max: 3_600_000 }),
})

type Input = { readonly afterMs: number } & (
  | { readonly kind: 'handled'; readonly count: number }
  | { readonly kind: 'unreachable' }
  | { readonly kind: 'unexplained'; readonly messageId: string }
)
const afterMs = fc.oneof(fc.constant(0), fc.nat({ max: 50 }), fc.nat({ max: 5_000 }))
const anyHandled = fc.record({
  kind: fc.constant('handled' as const),
  count: fc.integer({ min: 1, max: 5 }),
  afterMs,
})
const anyUnreachable = fc.record({ kind: fc.constant('unreachable' as const), afterMs })
const anyUnexplained = fc.record({
  kind: fc.constant('unexplained' as const),
  messageId: fc.nat({ max: 400 }).map(String),
  afterMs,
})
const bounds = { minLength: 1, maxLength: 120 }
const anyInputs = fc.array(fc.oneof(anyHandled, anyUnreachable, anyUnexplained), bounds)
const anyMessageInputs = fc.array(fc.oneof(anyHandled, anyUnexplained), bounds)

function step(policy: OutagePolicy, state: OutageState, input: Input, now: number) {
  switch (input.kind) {
    case 'handled':
      return outageHandled(policy, state, { count: input.count, at: now }, now)
    case 'unreachable':
      return outageUnreachable(policy, state, now)
    case 'unexplained':
      return outageUnexplained(policy, state, input.messageId, now)
  }
}

function withIds(inputs: readonly Input[], rename: (messageId: string) => string): Input[] {
  return inputs.map((one) =>
    one.kind === 'unexplained' ? { ...one, messageId: rename(one.messageId) } : one,
  )
}

function applyAll(policy: OutagePolicy, inputs: readonly Input[]) {
  return transitionsOf<Input, OutageState>(NO_OUTAGE, inputs, (state, input, now) =>
    step(policy, state, input, now),
  )
}

describe('the outage window, for any sequence', () => {
  test('never marks a dependency unhealthy because of one bad message', () => {
    fc.assert(
      fc.property(anyPolicy, anyMessageInputs, (policy, inputs) => {
        for (const { after, now } of applyAll(
          policy,
          withIds(inputs, () => 'poison'),
        )) {
          expect(isSick(policy, after, now)).toBe(false)
        }
      }),
    )
  })

  test('keeps a dependency healthy while fewer distinct messages than needed fail', () => {
    fc.assert(
      fc.property(anyPolicy, anyMessageInputs, (policy, inputs) => {
        const few = withIds(inputs, (id) => String(Number(id) % (policy.failures - 1)))
        for (const { after, now } of applyAll(policy, few)) {
          expect(isSick(policy, after, now)).toBe(false)
        }
      }),
    )
  })

  test.each(['unexplained', 'unreachable'] as const)(
    'marks a dependency unhealthy when enough failures come together: %s',
    (kind) => {
      fc.assert(
        fc.property(anyPolicy, (policy) => {
          const all = Array.from({ length: policy.failures }, (_, index) => ({
            kind,
            messageId: String(index),
            afterMs: 0,
          }))
          for (const [index, { after, now }] of applyAll(policy, all).entries()) {
            expect(isSick(policy, after, now)).toBe(index + 1 >= policy.failures)
          }
        }),
      )
    },
  )

  test('counts all of the last half window, and nothing older than one and a half', () => {
    fc.assert(
      fc.property(anyPolicy, anyInputs, (policy, inputs) => {
        const transitions = applyAll(policy, inputs)
        for (const [index, { after, now }] of transitions.entries()) {
          const since = (ms: number) =>
            totals(
              transitions
                .slice(0, index + 1)
                .filter((one) => now - one.now < ms)
                .map((one) => one.input),
            )
          const least = since(policy.windowMs / 2)
          const most = since(policy.windowMs * 1.5)
          const suspects = [...after.now.suspects, ...after.before.suspects]
          expect(suspects).toEqual(expect.arrayContaining(least.suspects))
          expect(most.suspects).toEqual(expect.arrayContaining(suspects))
          for (const kind of ['handled', 'unreachable'] as const) {
            const counted = after.now[kind] + after.before[kind]
            expect(counted).toBeGreaterThanOrEqual(least[kind])
            expect(counted).toBeLessThanOrEqual(most[kind])
          }
        }
      }),
    )
  })

  test('drops an outage that has ended', () => {
    fc.assert(
      fc.property(anyPolicy, anyInputs, (policy, inputs) => {
        for (const { after, now } of applyAll(policy, inputs)) {
          expect(isSick(policy, after, now + policy.windowMs)).toBe(false)
        }
      }),
    )
  })

  test('has a proof of service exactly when a success came after the wait began', () => {
    fc.assert(
      fc.property(anyPolicy, anyInputs, fc.nat({ max: 20_000 }), (policy, inputs, waitedMs) => {
        const transitions = applyAll(policy, inputs)
        for (const [index, { after, now }] of transitions.entries()) {
          const served = transitions
            .slice(0, index + 1)
            .some((one) => one.input.kind === 'handled' && one.now > now - waitedMs)
          expect(hasServedOthers(after, waitedMs, now)).toBe(served)
        }
      }),
    )
  })

  test('is bounded for any number of failing messages', () => {
    fc.assert(
      fc.property(anyPolicy, fc.nat({ max: 2_000 }), (policy, count) => {
        let state: OutageState = NO_OUTAGE
        for (let index = 0; index < count; index += 1) {
          state = outageUnexplained(policy, state, String(index), NOW + index)
        }
        expect(state.now.suspects.length).toBeLessThanOrEqual(256)
        expect(state.before.suspects.length).toBeLessThanOrEqual(256)
      }),
      { numRuns: 30 },
    )
  })

  test('does not change when it is read', () => {
    fc.assert(
      fc.property(anyPolicy, anyInputs, (policy, inputs) => {
        for (const { after, now } of applyAll(policy, inputs)) {
          const copy = structuredClone(after)
          isSick(policy, after, now + policy.windowMs)
          expect(after).toEqual(copy)
        }
      }),
    )
  })

  test('behaves the same after a round trip through JSON', () => {
    fc.assert(
      fc.property(anyPolicy, anyInputs, (policy, inputs) => {
        for (const { input, before, after, now } of applyAll(policy, inputs)) {
          const restored = JSON.parse(JSON.stringify(before)) as OutageState
          expect(restored).toEqual(before)
          expect(step(policy, restored, input, now)).toEqual(after)
          expect(isSick(policy, restored, now)).toBe(isSick(policy, before, now))
        }
      }),
    )
  })
})

function totals(inputs: readonly Input[]) {
  return {
    handled: inputs.reduce((sum, one) => sum + (one.kind === 'handled' ? one.count : 0), 0),
    unreachable: inputs.filter((one) => one.kind === 'unreachable').length,
    suspects: inputs.flatMap((one) => (one.kind === 'unexplained' ? one.messageId : [])),
  }
}
