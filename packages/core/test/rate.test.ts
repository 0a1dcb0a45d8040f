import { describe, expect, it } from 'vitest'
import { startRate, takeOne } from '../src/rate.ts'

const POLICY = { perSecond: 10, burst: 3 }

/** Returns how many of `count` are granted at that time. */
function take(state: ReturnType<typeof startRate>, count: number, now: number) {
  let granted = 0
  let next = state
  for (let time = 0; time < count; time++) {
    const answer = takeOne(POLICY, next, now)
    next = answer.state
    if (answer.granted) granted += 1
  }
  return { granted, state: next }
}

describe('a rate', () => {
  it('grants the burst, and then what time adds', () => {
    const first = take(startRate(POLICY, 0), 10, 0)
    expect(first.granted).toBe(3)
    const later = take(first.state, 10, 250)
    expect(later.granted).toBe(2)
    expect(take(later.state, 10, 300).granted).toBe(1)
  })

  it('saves no more than the burst', () => {
    const empty = take(startRate(POLICY, 0), 3, 0)
    expect(take(empty.state, 100, 3_600_000).granted).toBe(3)
  })

  it('adds nothing twice when the time is earlier than the last', () => {
    const empty = take(startRate(POLICY, 1_000), 3, 1_000)
    const back = take(empty.state, 1, 0)
    expect([back.granted, back.state.at]).toEqual([0, 1_000])
    expect(take(back.state, 5, 1_100).granted).toBe(1)
  })

  it('never grants more than the burst and the rate together, for any times', () => {
    let state = startRate(POLICY, 0)
    let granted = 0
    for (let now = 0; now <= 10_000; now += 7) {
      const answer = takeOne(POLICY, state, now)
      state = answer.state
      if (answer.granted) granted += 1
    }
    expect(granted).toBeGreaterThanOrEqual(100)
    expect(granted).toBeLessThanOrEqual(103)
  })
})
