import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  hasServedOthers,
  isSick,
  NO_OUTAGE,
  type OutagePolicy,
  type OutageState,
  outageFailed,
  outageHandled,
} from '../src/outage.ts'
import { NOW, transitionsOf } from './fixtures.ts'

const anyPolicy: fc.Arbitrary<OutagePolicy> = fc.record({
  ratio: fc.double({ min: 0.01, max: 1, noNaN: true }),
  failures: fc.integer({ min: 2, max: 200 }),
  windowMs: fc.integer({ min: 100, max: 3_600_000 }),
})

type Input = { readonly afterMs: number } & (
  | { readonly kind: 'handled'; readonly count: number }
  | { readonly kind: 'failed'; readonly messageId: string }
)
const afterMs = fc.oneof(fc.constant(0), fc.nat({ max: 50 }), fc.nat({ max: 5_000 }))
const anyHandled = fc.record({
  kind: fc.constant('handled' as const),
  count: fc.integer({ min: 1, max: 5 }),
  afterMs,
})
const anyFailed = fc.record({
  kind: fc.constant('failed' as const),
  messageId: fc.nat({ max: 400 }).map(String),
  afterMs,
})
const bounds = { minLength: 1, maxLength: 120 }
const anyInputs = fc.array(fc.oneof(anyHandled, anyFailed), bounds)

function step(policy: OutagePolicy, state: OutageState, input: Input, now: number) {
  switch (input.kind) {
    case 'handled':
      return outageHandled(policy, state, { count: input.count, at: now }, now)
    case 'failed':
      return outageFailed(policy, state, input.messageId, now)
  }
}

function withIds(inputs: readonly Input[], rename: (messageId: string) => string): Input[] {
  return inputs.map((one) =>
    one.kind === 'failed' ? { ...one, messageId: rename(one.messageId) } : one,
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
      fc.property(anyPolicy, anyInputs, (policy, inputs) => {
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
      fc.property(anyPolicy, anyInputs, (policy, inputs) => {
        const few = withIds(inputs, (id) => String(Number(id) % (policy.failures - 1)))
        for (const { after, now } of applyAll(policy, few)) {
          expect(isSick(policy, after, now)).toBe(false)
        }
      }),
    )
  })

  test('marks a dependency unhealthy when enough messages fail together', () => {
    fc.assert(
      fc.property(anyPolicy, (policy) => {
        const all = Array.from({ length: policy.failures }, (_, index) => ({
          kind: 'failed' as const,
          messageId: String(index),
          afterMs: 0,
        }))
        for (const [index, { after, now }] of applyAll(policy, all).entries()) {
          expect(isSick(policy, after, now)).toBe(index + 1 >= policy.failures)
        }
      }),
    )
  })

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
          const failed = [...after.now.failed, ...after.before.failed]
          expect(failed).toEqual(expect.arrayContaining(least.failed))
          expect(most.failed).toEqual(expect.arrayContaining(failed))
          const handled = after.now.handled + after.before.handled
          expect(handled).toBeGreaterThanOrEqual(least.handled)
          expect(handled).toBeLessThanOrEqual(most.handled)
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
          state = outageFailed(policy, state, String(index), NOW + index)
        }
        expect(state.now.failed.length).toBeLessThanOrEqual(256)
        expect(state.before.failed.length).toBeLessThanOrEqual(256)
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
    failed: inputs.flatMap((one) => (one.kind === 'failed' ? one.messageId : [])),
  }
}
