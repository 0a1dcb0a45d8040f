import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type FloodPolicy, type FloodState, NO_FLOOD, takeDeadLetter } from '../src/flood.ts'

const SIGNATURES = ['a', 'b', 'c', 'd', 'e', 'f'] as const

const anyPolicy: fc.Arbitrary<FloodPolicy> = fc.record({
  burst: fc.integer({ min: 1, max: 10 }),
  perMinute: fc.double({ min: 1, max: 10_000, noNaN: true }),
  signatures: fc.integer({ min: 2, max: 8 }),
})

const anyInputs = fc.array(
  fc.record({
    signature: fc.constantFrom(...SIGNATURES),
    afterMs: fc.oneof(fc.constant(0), fc.nat({ max: 200 }), fc.nat({ max: 60_000 })),
  }),
  { minLength: 1, maxLength: 120 },
)

function applyAll(policy: FloodPolicy, inputs: readonly { signature: string; afterMs: number }[]) {
  let before: FloodState = NO_FLOOD
  let now = 1_700_000_000_000
  return inputs.map(({ signature, afterMs }) => {
    now += afterMs
    const answer = takeDeadLetter(policy, before, signature, now)
    const transition = { ...answer, signature, now, before }
    before = answer.state
    return transition
  })
}

describe('the flood guard, over any span of time', () => {
  test('allows no more of one signature than the burst and its share of the minutes', () => {
    fc.assert(
      fc.property(anyPolicy, anyInputs, (policy, inputs) => {
        // Enough room for all signatures: a removed signature starts with a new burst.
        const roomy = { ...policy, signatures: SIGNATURES.length }
        const transitions = applyAll(roomy, inputs)
        for (const signature of SIGNATURES) {
          const passes = transitions.filter(
            (one) => one.signature === signature && one.until === undefined,
          )
          for (const [first, { now }] of passes.entries()) {
            for (const [last, pass] of passes.entries()) {
              const minutes = (pass.now - now) / 60_000
              expect(last - first + 1).toBeLessThanOrEqual(
                policy.burst + policy.perMinute * Math.max(0, minutes) + 1e-6,
              )
            }
          }
        }
      }),
    )
  })

  test('watches no more signatures than allowed, each one once', () => {
    fc.assert(
      fc.property(anyPolicy, anyInputs, (policy, inputs) => {
        for (const { state } of applyAll(policy, inputs)) {
          expect(state.length).toBeLessThanOrEqual(policy.signatures)
          expect(new Set(state.map(({ signature }) => signature)).size).toBe(state.length)
        }
      }),
    )
  })

  test('keeps the signatures seen last, in the order they were seen', () => {
    fc.assert(
      fc.property(anyPolicy, anyInputs, (policy, inputs) => {
        const seen: string[] = []
        for (const { state, signature } of applyAll(policy, inputs)) {
          if (seen.includes(signature)) seen.splice(seen.indexOf(signature), 1)
          seen.push(signature)
          expect(state.map((one) => one.signature)).toEqual(seen.slice(-policy.signatures))
        }
      }),
    )
  })

  test('keeps tokens between zero and the burst', () => {
    fc.assert(
      fc.property(anyPolicy, anyInputs, (policy, inputs) => {
        for (const { tokens } of applyAll(policy, inputs).flatMap(({ state }) => state)) {
          expect(tokens).toBeGreaterThanOrEqual(0)
          expect(tokens).toBeLessThanOrEqual(policy.burst)
        }
      }),
    )
  })

  test('returns when the next may pass, to the millisecond', () => {
    fc.assert(
      fc.property(anyPolicy, anyInputs, (policy, inputs) => {
        for (const { state, signature, now, until } of applyAll(policy, inputs)) {
          if (until === undefined) continue
          expect(until).toBeGreaterThan(now)
          // A sum of fractions may end just above a whole millisecond, which is rounded up to the next one,
          // or just below a whole token: the last millisecond may be one too many, or one too few.
          expect(takeDeadLetter(policy, state, signature, until - 2).until).toBeDefined()
          expect(takeDeadLetter(policy, state, signature, until + 1).until).toBeUndefined()
        }
      }),
    )
  })

  test('behaves the same after a round trip through JSON', () => {
    fc.assert(
      fc.property(anyPolicy, anyInputs, (policy, inputs) => {
        for (const { before, state, until, signature, now } of applyAll(policy, inputs)) {
          const restored = JSON.parse(JSON.stringify(before)) as FloodState
          expect(restored).toEqual(before)
          expect(takeDeadLetter(policy, restored, signature, now)).toEqual({ state, until })
        }
      }),
    )
  })
})
