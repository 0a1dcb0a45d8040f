import { describe, expect, test } from 'vitest'
import { type FloodPolicy, type FloodState, NO_FLOOD, takeDeadLetter } from '../src/flood.ts'

const POLICY: FloodPolicy = { burst: 3, perMinute: 60, signatures: 3 }

/** Creates dead letters one after the other, all at the same time. */
function pour(
  signatures: readonly string[],
  { policy = POLICY, from = NO_FLOOD, now = 1_000 } = {},
): { state: FloodState; times: (number | undefined)[]; begins: boolean[] } {
  const times: (number | undefined)[] = []
  const begins: boolean[] = []
  let state = from
  for (const signature of signatures) {
    const answer = takeDeadLetter(policy, state, signature, now)
    times.push(answer.notBefore)
    begins.push(answer.begins)
    state = answer.state
  }
  return { state, times, begins }
}

const bucket = (tokens: number, at: number, signature = 'a') => ({
  signature,
  tokens,
  at,
  isFlood: false,
})
const flooded = (tokens: number, at: number, signature = 'a') => ({
  ...bucket(tokens, at, signature),
  isFlood: true,
})

describe('the flood guard', () => {
  test('starts empty and frozen', () => {
    expect(NO_FLOOD).toEqual([])
    expect(Object.isFrozen(NO_FLOOD)).toBe(true)
  })

  test('allows a burst of similar dead letters and spreads the next ones', () => {
    const { state, times, begins } = pour(['a', 'a', 'a', 'a', 'a'])
    expect(times).toEqual([undefined, undefined, undefined, 2_000, 3_000])
    expect(begins).toEqual([false, false, false, true, false])
    expect(state).toEqual([flooded(-2, 1_000)])
  })

  test('counts each signature separately', () => {
    const { state, times } = pour(['a', 'a', 'a', 'b', 'a', 'b'])
    expect(times).toEqual([undefined, undefined, undefined, undefined, 2_000, undefined])
    expect(state).toEqual([flooded(-1, 1_000), bucket(1, 1_000, 'b')])
  })

  test('allows one more when its share of a minute has passed, and not earlier', () => {
    const empty: FloodState = [bucket(0, 1_000)]
    const early = takeDeadLetter(POLICY, empty, 'a', 1_750)
    expect(early).toEqual({ state: [flooded(-0.25, 1_750)], notBefore: 2_000, begins: true })
    expect(takeDeadLetter(POLICY, empty, 'a', 1_999).notBefore).toBe(2_000)
    const onTime = takeDeadLetter(POLICY, empty, 'a', 2_000)
    expect(onTime).toEqual({ state: [bucket(0, 2_000)], notBefore: undefined, begins: false })
    const late = takeDeadLetter(POLICY, empty, 'a', 2_500)
    expect(late).toEqual({ state: [bucket(0.5, 2_500)], notBefore: undefined, begins: false })
  })

  test.each([
    [60, 0, 1_000],
    [60, 0.25, 750],
    [60, -2, 3_000],
    [120, 0, 500],
    [1, 0, 60_000],
    [1, 0.5, 30_000],
    [7, 0, 8_572],
  ])(
    'returns when the dead letter may be written: at %d a minute with %d saved in %d ms',
    (perMinute, tokens, waitMs) => {
      const policy = { ...POLICY, perMinute }
      const answer = takeDeadLetter(policy, [bucket(tokens, 5_000)], 'a', 5_000)
      expect(answer.state).toEqual([flooded(tokens - 1, 5_000)])
      expect(answer.notBefore).toBe(5_000 + waitMs)
    },
  )

  test('reports one flood until the bucket is full again', () => {
    const during = takeDeadLetter(POLICY, [flooded(-1, 1_000)], 'a', 4_999)
    expect(during).toMatchObject({ begins: false, notBefore: undefined })
    expect(during.state[0]).toMatchObject({ isFlood: true })
    const slowed = takeDeadLetter(POLICY, [flooded(-1, 1_000)], 'a', 2_000)
    expect(slowed).toMatchObject({ begins: false, notBefore: 3_000 })
    const after = takeDeadLetter(POLICY, [flooded(-1, 1_000)], 'a', 5_000)
    expect(after).toEqual({ state: [bucket(2, 5_000)], notBefore: undefined, begins: false })
    expect(pour(['a', 'a', 'a'], { from: after.state, now: 5_000 }).begins).toEqual([
      false,
      false,
      true,
    ])
  })

  test('remembers at most 1,000 dead letters that are due later', () => {
    const deep = takeDeadLetter(POLICY, [flooded(-999.5, 1_000)], 'a', 1_000)
    expect(deep.state).toEqual([flooded(-1_000, 1_000)])
    const deepest = takeDeadLetter(POLICY, deep.state, 'a', 1_000)
    expect(deepest).toEqual({ state: deep.state, notBefore: 1_002_000, begins: false })
  })

  test('saves no more than a burst', () => {
    const empty: FloodState = [bucket(0, 1_000)]
    expect(takeDeadLetter(POLICY, empty, 'a', 3_999).state[0]?.tokens).toBeCloseTo(1.999)
    expect(takeDeadLetter(POLICY, empty, 'a', 4_000).state).toEqual([bucket(2, 4_000)])
    expect(takeDeadLetter(POLICY, empty, 'a', 9_000_000).state).toEqual([bucket(2, 9_000_000)])
  })

  test('gains and loses no tokens when the clock steps back', () => {
    expect(takeDeadLetter(POLICY, [bucket(2, 60_000)], 'a', 1_000)).toEqual({
      state: [bucket(1, 1_000)],
      notBefore: undefined,
      begins: false,
    })
  })

  test('removes the signature that was idle longest when it watches too many', () => {
    const three = pour(['a', 'b', 'c']).state
    expect(three.map(({ signature }) => signature)).toEqual(['a', 'b', 'c'])
    expect(pour(['d'], { from: three }).state.map(({ signature }) => signature)).toEqual([
      'b',
      'c',
      'd',
    ])
  })

  test('moves a signature to the end when it occurs again, even when it is slowed', () => {
    const { state } = pour(['a', 'a', 'a', 'b', 'c', 'a', 'd'])
    expect(state).toEqual([bucket(2, 1_000, 'c'), flooded(-1, 1_000, 'a'), bucket(2, 1_000, 'd')])
  })

  test('watches as many signatures as the policy sets', () => {
    const two = { ...POLICY, signatures: 2 }
    expect(pour(['a', 'b', 'a', 'b'], { policy: two }).state).toEqual([
      bucket(1, 1_000, 'a'),
      bucket(1, 1_000, 'b'),
    ])
    expect(pour(['a', 'b', 'c'], { policy: two }).state).toHaveLength(2)
  })

  test('watches fewer after the policy was reduced', () => {
    const six = { ...POLICY, signatures: 6 }
    const wide = pour(['a', 'b', 'c', 'd', 'e'], { policy: six }).state
    const names = (state: FloodState) => state.map(({ signature }) => signature)
    expect(names(wide)).toHaveLength(5)
    expect(names(pour(['f'], { from: wide }).state)).toEqual(['d', 'e', 'f'])
    expect(names(pour(['a'], { from: wide }).state)).toEqual(['d', 'e', 'a'])
  })

  test('does not change the given state', () => {
    const before = pour(['a', 'b', 'c']).state
    const copy = structuredClone(before)
    pour(['a', 'd'], { from: before })
    expect(before).toEqual(copy)
  })
})
