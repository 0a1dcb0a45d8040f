import { describe, expect, test } from 'vitest'
import { type FloodPolicy, type FloodState, NO_FLOOD, takeDeadLetter } from '../src/flood.ts'

const POLICY: FloodPolicy = { burst: 3, perMinute: 60, signatures: 3 }

/** Creates dead letters one after the other, all at the same time. */
function pour(
  signatures: readonly string[],
  { policy = POLICY, from = NO_FLOOD, now = 1_000 } = {},
): { state: FloodState; untils: (number | undefined)[] } {
  const untils: (number | undefined)[] = []
  let state = from
  for (const signature of signatures) {
    const answer = takeDeadLetter(policy, state, signature, now)
    untils.push(answer.until)
    state = answer.state
  }
  return { state, untils }
}

const bucket = (tokens: number, at: number, signature = 'a') => ({ signature, tokens, at })

describe('the flood guard', () => {
  test('starts empty and frozen', () => {
    expect(NO_FLOOD).toEqual([])
    expect(Object.isFrozen(NO_FLOOD)).toBe(true)
  })

  test('allows a burst of similar dead letters and stops the next', () => {
    const { state, untils } = pour(['a', 'a', 'a', 'a'])
    expect(untils).toEqual([undefined, undefined, undefined, 2_000])
    expect(state).toEqual([bucket(0, 1_000)])
  })

  test('counts each signature separately', () => {
    const { state, untils } = pour(['a', 'a', 'a', 'b', 'a', 'b'])
    expect(untils).toEqual([undefined, undefined, undefined, undefined, 2_000, undefined])
    expect(state).toEqual([bucket(0, 1_000), bucket(1, 1_000, 'b')])
  })

  test('allows one more when its share of a minute has passed, and not earlier', () => {
    const empty: FloodState = [bucket(0, 1_000)]
    const early = takeDeadLetter(POLICY, empty, 'a', 1_750)
    expect(early).toEqual({ state: [bucket(0.75, 1_750)], until: 2_000 })
    expect(takeDeadLetter(POLICY, empty, 'a', 1_999).until).toBe(2_000)
    expect(takeDeadLetter(POLICY, empty, 'a', 2_000)).toEqual({
      state: [bucket(0, 2_000)],
      until: undefined,
    })
    expect(takeDeadLetter(POLICY, empty, 'a', 2_500)).toEqual({
      state: [bucket(0.5, 2_500)],
      until: undefined,
    })
  })

  test.each([
    [60, 0, 1_000],
    [60, 0.25, 750],
    [120, 0, 500],
    [1, 0, 60_000],
    [1, 0.5, 30_000],
    [7, 0, 8_572],
  ])(
    'returns when the next may pass: at %d a minute with %d saved in %d ms',
    (perMinute, tokens, waitMs) => {
      const policy = { ...POLICY, perMinute }
      const answer = takeDeadLetter(policy, [bucket(tokens, 5_000)], 'a', 5_000)
      expect(answer).toEqual({ state: [bucket(tokens, 5_000)], until: 5_000 + waitMs })
      expect(takeDeadLetter(policy, answer.state, 'a', 5_000 + waitMs - 1).until).toBeDefined()
      expect(takeDeadLetter(policy, answer.state, 'a', 5_000 + waitMs).until).toBeUndefined()
    },
  )

  test('saves no more than a burst', () => {
    const empty: FloodState = [bucket(0, 1_000)]
    expect(takeDeadLetter(POLICY, empty, 'a', 3_999).state[0]?.tokens).toBeCloseTo(1.999)
    expect(takeDeadLetter(POLICY, empty, 'a', 4_000).state).toEqual([bucket(2, 4_000)])
    expect(takeDeadLetter(POLICY, empty, 'a', 9_000_000).state).toEqual([bucket(2, 9_000_000)])
  })

  test('gains and loses no tokens when the clock steps back', () => {
    expect(takeDeadLetter(POLICY, [bucket(2, 60_000)], 'a', 1_000)).toEqual({
      state: [bucket(1, 1_000)],
      until: undefined,
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

  test('moves a signature to the end when it occurs again, even when it is stopped', () => {
    const { state } = pour(['a', 'a', 'a', 'b', 'c', 'a', 'd'])
    expect(state).toEqual([bucket(2, 1_000, 'c'), bucket(0, 1_000, 'a'), bucket(2, 1_000, 'd')])
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
