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
          const written = transitions
            .filter((one) => one.signature === signature)
            .map(({ notBefore, now }) => notBefore ?? now)
          for (const [first, from] of written.entries()) {
            for (const [last, to] of written.entries()) {
              const minutes = Math.max(0, to - from) / 60_000
              // 1 ms of rounding for each dead letter.
              const rounding = (policy.perMinute / 60_000) * written.length
              expect(last - first + 1).toBeLessThanOrEqual(
                policy.burst + policy.perMinute * minutes + rounding + 1e-6,
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

  test('keeps at most a burst of tokens', () => {
    fc.assert(
      fc.property(anyPolicy, anyInputs, (policy, inputs) => {
        for (const { tokens } of applyAll(policy, inputs).flatMap(({ state }) => state)) {
          expect(tokens).toBeLessThanOrEqual(policy.burst)
        }
      }),
    )
  })

  test('writes dead letters of one signature in the order in which they were decided', () => {
    fc.assert(
      fc.property(anyPolicy, anyInputs, (policy, inputs) => {
        const roomy = { ...policy, signatures: SIGNATURES.length }
        const last = new Map<string, number>()
        for (const { signature, notBefore, now } of applyAll(roomy, inputs)) {
          const at = notBefore ?? now
          // A sum of fractions may end just above or just below a whole millisecond.
          expect(at).toBeGreaterThanOrEqual((last.get(signature) ?? 0) - 1)
          last.set(signature, at)
        }
      }),
    )
  })

  test('reports a flood only with a slowed dead letter', () => {
    fc.assert(
      fc.property(anyPolicy, anyInputs, (policy, inputs) => {
        const begun = applyAll(policy, inputs).filter(({ begins }) => begins)
        expect(begun.every(({ notBefore, now }) => (notBefore ?? 0) > now)).toBe(true)
      }),
    )
  })

  test('behaves the same after a round trip through JSON', () => {
    fc.assert(
      fc.property(anyPolicy, anyInputs, (policy, inputs) => {
        for (const { before, state, notBefore, begins, signature, now } of applyAll(
          policy,
          inputs,
        )) {
          const restored = JSON.parse(JSON.stringify(before)) as FloodState
          expect(restored).toEqual(before)
          expect(takeDeadLetter(policy, restored, signature, now)).toEqual({
            state,
            notBefore,
            begins,
          })
        }
      }),
    )
  })
})
