import { describe, expect, test } from 'vitest'
import {
  type BudgetPolicy,
  type BudgetState,
  depositSuccesses,
  startBudget,
  takeRetry,
} from '../src/budget.ts'

const POLICY: BudgetPolicy = {
  ratio: 0.1,
  floorPerSecond: 2,
  burst: 5,
  ratePerSecond: 10,
  onExceeded: 'delay',
  release: { batch: 3, intervalMs: 1_000 },
}

const state = (fields: Partial<BudgetState> = {}): BudgetState => ({
  tokens: 3,
  rateTokens: 4,
  at: 1_000,
  stageAt: 1_000,
  staged: 0,
  ...fields,
})

const never = () => {
  throw new Error('a retry within budget draws no random number')
}

describe('a new budget', () => {
  test('starts with a full burst and one second of the rate', () => {
    expect(startBudget(POLICY, 7_000)).toEqual({
      tokens: 5,
      rateTokens: 10,
      at: 7_000,
      stageAt: 7_000,
      staged: 0,
    })
  })
})

describe('a success', () => {
  test('adds its ratio of a retry', () => {
    expect(depositSuccesses(POLICY, state({ tokens: 1 }), 1)).toEqual(state({ tokens: 1.1 }))
    expect(depositSuccesses(POLICY, state({ tokens: 1 }), 10)).toEqual(state({ tokens: 2 }))
  })

  test('saves no more than the burst', () => {
    expect(depositSuccesses(POLICY, state({ tokens: 4.5 }), 5)).toEqual(state({ tokens: 5 }))
    expect(depositSuccesses(POLICY, state({ tokens: 4.5 }), 1_000)).toEqual(state({ tokens: 5 }))
  })

  test('changes nothing and allocates nothing when the burst is full', () => {
    const full = state({ tokens: 5 })
    expect(depositSuccesses(POLICY, full, 1_000)).toBe(full)
  })

  test('keeps tokens that a larger policy had saved', () => {
    const rich = state({ tokens: 9 })
    expect(depositSuccesses(POLICY, rich, 1)).toBe(rich)
  })
})

describe('a retry within budget', () => {
  test('runs now and takes one token of both kinds', () => {
    expect(takeRetry(POLICY, state(), 1_000, never)).toEqual({
      state: state({ tokens: 2, rateTokens: 3 }),
      releaseAt: 1_000,
      granted: true,
    })
  })

  test('needs a whole token of the ratio and minimum', () => {
    expect(takeRetry(POLICY, state({ tokens: 1 }), 1_000, never)).toMatchObject({
      granted: true,
      state: { tokens: 0 },
    })
    expect(takeRetry(POLICY, state({ tokens: 0.999 }), 1_000, () => 0).granted).toBe(false)
  })

  test('needs a whole token of the rate', () => {
    expect(takeRetry(POLICY, state({ rateTokens: 1 }), 1_000, never)).toMatchObject({
      granted: true,
      state: { rateTokens: 0 },
    })
    expect(takeRetry(POLICY, state({ rateTokens: 0.999 }), 1_000, () => 0).granted).toBe(false)
  })

  test('gains tokens over time at the minimum rate, up to the burst', () => {
    const empty = state({ tokens: 0, rateTokens: 10 })
    expect(takeRetry(POLICY, empty, 1_499, () => 0).granted).toBe(false)
    expect(takeRetry(POLICY, empty, 1_500, never)).toMatchObject({
      granted: true,
      state: { tokens: 0, at: 1_500 },
    })
    expect(takeRetry(POLICY, empty, 2_000, never)).toMatchObject({ state: { tokens: 1 } })
    expect(takeRetry(POLICY, empty, 3_499, never).state.tokens).toBeCloseTo(3.998)
    expect(takeRetry(POLICY, empty, 3_500, never)).toMatchObject({ state: { tokens: 4 } })
    expect(takeRetry(POLICY, empty, 900_000, never)).toMatchObject({ state: { tokens: 4 } })
  })

  test('is limited by the rate, up to one second of it', () => {
    const empty = state({ tokens: 5, rateTokens: 0 })
    expect(takeRetry(POLICY, empty, 1_099, () => 0).granted).toBe(false)
    expect(takeRetry(POLICY, empty, 1_100, never)).toMatchObject({
      granted: true,
      state: { rateTokens: 0, at: 1_100 },
    })
    expect(takeRetry(POLICY, empty, 1_500, never)).toMatchObject({ state: { rateTokens: 4 } })
    expect(takeRetry(POLICY, empty, 900_000, never)).toMatchObject({ state: { rateTokens: 9 } })
  })

  test('gains and loses no tokens when the clock steps back', () => {
    expect(takeRetry(POLICY, state({ at: 60_000 }), 1_000, never)).toMatchObject({
      granted: true,
      releaseAt: 1_000,
      state: { tokens: 2, rateTokens: 3, at: 60_000 },
    })
  })

  test('gains tokens once for a span of time, also when the clock steps back in between', () => {
    const empty = state({ tokens: 0, rateTokens: 10, at: 60_000 })
    const back = takeRetry(POLICY, empty, 1_000, () => 0).state
    expect(takeRetry(POLICY, back, 60_000, () => 0).state).toMatchObject({
      tokens: -2,
      at: 60_000,
    })
  })
})

describe('a retry over budget', () => {
  const empty = (fields: Partial<BudgetState> = {}) =>
    state({ tokens: 0, rateTokens: 0, ...fields })
  const take = (from: BudgetState, now: number, chance = 0) =>
    takeRetry(POLICY, from, now, () => chance)

  test('opens a stage one interval ahead when no stage exists', () => {
    expect(take(empty({ stageAt: 1_000 }), 1_000)).toEqual({
      state: empty({ tokens: -1, stageAt: 2_000, staged: 1 }),
      releaseAt: 2_000,
      granted: false,
    })
    expect(take(empty({ stageAt: 400, staged: 2 }), 1_000)).toMatchObject({
      state: { stageAt: 2_000, staged: 1 },
      releaseAt: 2_000,
    })
  })

  test('joins the stage ahead while it has room', () => {
    expect(take(empty({ stageAt: 1_001, staged: 2 }), 1_000)).toMatchObject({
      state: { stageAt: 1_001, staged: 3 },
      releaseAt: 1_001,
    })
  })

  test('opens the next stage when the one ahead is full', () => {
    expect(take(empty({ stageAt: 1_500, staged: 3 }), 1_000)).toMatchObject({
      state: { stageAt: 2_500, staged: 1 },
      releaseAt: 2_500,
    })
  })

  test('ignores a full stage that has passed', () => {
    expect(take(empty({ stageAt: 1_000, staged: 3 }), 1_000)).toMatchObject({
      state: { stageAt: 2_000, staged: 1 },
    })
  })

  test('is spread inside its stage', () => {
    expect(take(empty(), 1_000, 0.25).releaseAt).toBe(2_250)
    expect(take(empty(), 1_000, 0.999_9).releaseAt).toBe(2_999)
  })

  test('takes its token in advance from the saved tokens, not from the rate', () => {
    const answer = take(empty({ tokens: 0.25, rateTokens: 0.5 }), 1_010)
    expect(answer.granted).toBe(false)
    expect(answer.state.tokens).toBeCloseTo(-0.73)
    expect(answer.state.rateTokens).toBeCloseTo(0.6)
    expect(answer.state.at).toBe(1_010)
  })

  test('leaves a debt: the next retry within budget waits until the debt is covered', () => {
    const owing = empty({ tokens: -3, rateTokens: 10, stageAt: 0 })
    expect(takeRetry(POLICY, owing, 2_999, () => 0).granted).toBe(false)
    expect(takeRetry(POLICY, owing, 3_000, never)).toMatchObject({
      granted: true,
      state: { tokens: 0 },
    })
    expect(depositSuccesses(POLICY, owing, 20).tokens).toBe(-1)
  })

  test.each(['deadLetter', 'drop'] as const)(
    'takes no slot and owes nothing when it will not run again: %s',
    (onExceeded) => {
      const policy: BudgetPolicy = { ...POLICY, onExceeded }
      const from = empty({ tokens: 0.25, rateTokens: 0.5, stageAt: 400, staged: 2 })
      expect(takeRetry(policy, from, 1_500, never)).toMatchObject({ granted: true })
      const answer = takeRetry(policy, from, 1_250, never)
      expect(answer).toEqual({
        state: empty({ tokens: 0.75, rateTokens: 3, at: 1_250, stageAt: 400, staged: 2 }),
        releaseAt: 1_250,
        granted: false,
      })
    },
  )

  test('returns batch by batch', () => {
    const releases: number[] = []
    let current = empty()
    for (let index = 0; index < 8; index += 1) {
      const answer = take(current, 1_000)
      releases.push(answer.releaseAt)
      current = answer.state
    }
    expect(releases).toEqual([2_000, 2_000, 2_000, 3_000, 3_000, 3_000, 4_000, 4_000])
  })
})
