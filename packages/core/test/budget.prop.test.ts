import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  type BudgetPolicy,
  type BudgetState,
  depositSuccesses,
  startBudget,
  takeRetry,
} from '../src/budget.ts'

const anyPolicy: fc.Arbitrary<BudgetPolicy> = fc.record({
  ratio: fc.double({ min: 0, max: 10, noNaN: true }),
  floorPerSecond: fc.double({ min: 0, max: 50, noNaN: true }),
  burst: fc.double({ min: 1, max: 50, noNaN: true }),
  ratePerSecond: fc.double({ min: 1, max: 50, noNaN: true }),
  onExceeded: fc.constant('delay' as const),
  release: fc.record({
    batch: fc.integer({ min: 1, max: 5 }),
    intervalMs: fc.integer({ min: 1, max: 5_000 }),
  }),
})

/** A success or a retry, some time after the previous one. */
const anyInputs = fc.array(
  fc.record({
    successes: fc.oneof({ weight: 3, arbitrary: fc.constant(0) }, fc.integer({ min: 1, max: 20 })),
    afterMs: fc.oneof(fc.constant(0), fc.nat({ max: 100 }), fc.nat({ max: 5_000 })),
    chance: fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
  }),
  { minLength: 1, maxLength: 120 },
)

interface Transition {
  readonly now: number
  readonly successes: number
  /** Undefined for a success. */
  readonly granted: boolean | undefined
  readonly releaseAt: number
  readonly before: BudgetState
  readonly state: BudgetState
  readonly chance: number
}

function applyAll(
  policy: BudgetPolicy,
  inputs: readonly { successes: number; afterMs: number; chance: number }[],
): Transition[] {
  let now = 1_000_000
  let before = startBudget(policy, now)
  return inputs.map(({ successes, afterMs, chance }) => {
    now += afterMs
    const answer =
      successes > 0
        ? { state: depositSuccesses(policy, before, successes), granted: undefined, releaseAt: now }
        : takeRetry(policy, before, now, () => chance)
    const transition = { now, successes, before, chance, ...answer }
    before = answer.state
    return transition
  })
}

/** Sums of floating-point tokens are off by less. */
const EPSILON = 1e-6

describe('a retry budget, over any span of time', () => {
  test('grants no more than the ratio of successes, the minimum and the burst allow', () => {
    fc.assert(
      fc.property(anyPolicy, anyInputs, (policy, inputs) => {
        exerciseEverySpan(applyAll(policy, inputs), (granted, successes, seconds) => {
          const allowed = policy.ratio * successes + policy.floorPerSecond * seconds + policy.burst
          expect(granted).toBeLessThanOrEqual(allowed + EPSILON)
        })
      }),
    )
  })

  test('grants no more than the rate allows', () => {
    fc.assert(
      fc.property(anyPolicy, anyInputs, (policy, inputs) => {
        exerciseEverySpan(applyAll(policy, inputs), (granted, _, seconds) => {
          const allowed = policy.ratePerSecond * seconds + policy.ratePerSecond
          expect(granted).toBeLessThanOrEqual(allowed + EPSILON)
        })
      }),
    )
  })

  test('refuses nothing that the minimum and the rate allow', () => {
    const perSecond = fc.double({ min: 0.1, max: 50, noNaN: true })
    fc.assert(
      fc.property(anyPolicy, perSecond, (policy, floorPerSecond) => {
        const afterMs = 1 + Math.ceil(1_000 / Math.min(policy.ratePerSecond, floorPerSecond))
        const calm = Array.from({ length: 100 }, () => ({ successes: 0, afterMs, chance: 0.5 }))
        for (const { granted } of applyAll({ ...policy, floorPerSecond }, calm)) {
          expect(granted).toBe(true)
        }
      }),
    )
  })

  test('keeps tokens within its bounds, and owes no more than it has staged', () => {
    fc.assert(
      fc.property(anyPolicy, anyInputs, (policy, inputs) => {
        let staged = 0
        for (const { state, granted } of applyAll(policy, inputs)) {
          if (granted === false) staged += 1
          expect(state.tokens).toBeGreaterThanOrEqual(-staged)
          expect(state.tokens).toBeLessThanOrEqual(policy.burst)
          expect(state.rateTokens).toBeGreaterThanOrEqual(0)
          expect(state.rateTokens).toBeLessThanOrEqual(policy.ratePerSecond)
        }
      }),
    )
  })
})

describe('the staged release', () => {
  test('never puts more than a batch in one stage, and stages never overlap', () => {
    fc.assert(
      fc.property(anyPolicy, anyInputs, (policy, inputs) => {
        const { batch, intervalMs } = policy.release
        const stages = new Map<number, number>()
        for (const { granted, state } of applyAll(policy, inputs)) {
          if (granted !== false) continue
          stages.set(state.stageAt, (stages.get(state.stageAt) ?? 0) + 1)
          expect(state.staged).toBe(stages.get(state.stageAt))
        }
        const starts = [...stages.keys()]
        for (const [index, start] of starts.entries()) {
          expect(stages.get(start)).toBeLessThanOrEqual(batch)
          const next = starts[index + 1] ?? Number.POSITIVE_INFINITY
          expect(next - start).toBeGreaterThanOrEqual(intervalMs)
        }
      }),
    )
  })

  test('never releases before now, and always inside the stage', () => {
    fc.assert(
      fc.property(anyPolicy, anyInputs, (policy, inputs) => {
        for (const { granted, releaseAt, now, state } of applyAll(policy, inputs)) {
          expect(releaseAt).toBeGreaterThanOrEqual(now)
          if (granted !== false) continue
          expect(state.stageAt).toBeGreaterThan(now)
          expect(releaseAt).toBeGreaterThanOrEqual(state.stageAt)
          expect(releaseAt).toBeLessThan(state.stageAt + policy.release.intervalMs)
        }
      }),
    )
  })
})

describe('a stored budget', () => {
  test('behaves the same after a round trip through JSON', () => {
    fc.assert(
      fc.property(anyPolicy, anyInputs, (policy, inputs) => {
        for (const transition of applyAll(policy, inputs)) {
          const restored = JSON.parse(JSON.stringify(transition.before)) as BudgetState
          expect(restored).toEqual(transition.before)
          const next =
            transition.granted === undefined
              ? depositSuccesses(policy, restored, transition.successes)
              : takeRetry(policy, restored, transition.now, () => transition.chance).state
          expect(next).toEqual(transition.state)
        }
      }),
    )
  })
})

/** Calls back for every span between two times, both included. */
function exerciseEverySpan(
  transitions: readonly Transition[],
  check: (granted: number, successes: number, seconds: number) => void,
): void {
  for (const [index, first] of transitions.entries()) {
    let granted = 0
    let successes = 0
    for (const transition of transitions.slice(index)) {
      granted += transition.granted === true ? 1 : 0
      successes += transition.successes
      check(granted, successes, (transition.now - first.now) / 1_000)
    }
  }
}
