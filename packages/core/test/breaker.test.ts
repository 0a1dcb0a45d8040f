import { describe, expect, test } from 'vitest'
import {
  type BreakerInput,
  type BreakerPolicy,
  type BreakerState,
  breakerPhase,
  CLOSED,
  ISOLATED,
  nextBreaker,
} from '../src/breaker.ts'

const CONSECUTIVE: BreakerPolicy = {
  trip: { kind: 'consecutive', failures: 3 },
  minOpenMs: 1_000,
  maxOpenMs: 30_000,
  openShare: 0.1,
  probes: 1,
  successes: 2,
}

const RATIO: BreakerPolicy = {
  ...CONSECUTIVE,
  trip: { kind: 'ratio', ratio: 0.5, windowMs: 10_000, minimum: 4 },
}

let others = 0
/** A failure to reach the dependency; of another message each time, unless it is named. */
const unreachable = (retryAfterMs = 0, messageId = `other-${others++}`): BreakerInput => ({
  kind: 'unreachable',
  messageId,
  retryAfterMs,
})
const unexplained = (messageId: string): BreakerInput => ({ kind: 'unexplained', messageId })
const handled = (count = 1): BreakerInput => ({ kind: 'handled', count })

const open = (fields: Partial<Extract<BreakerState, { phase: 'open' }>> = {}): BreakerState => ({
  phase: 'open',
  since: 10_000,
  until: 20_000,
  successes: 0,
  suspects: [],
  freshAt: 10_000,
  ...fields,
})

/** The middle of the jitter range: exactly the open time of the policy. */
const noJitter = () => 0.5

function after(
  policy: BreakerPolicy,
  inputs: readonly BreakerInput[],
  { from = CLOSED, now = 5_000 }: { from?: BreakerState; now?: number } = {},
): BreakerState {
  return inputs.reduce((state, input) => nextBreaker(policy, state, input, now, noJitter), from)
}

describe('the initial values', () => {
  test('are frozen', () => {
    expect(CLOSED).toEqual({
      phase: 'closed',
      failures: 0,
      suspects: [],
      windowFrom: 0,
      handled: 0,
    })
    expect(ISOLATED).toEqual({ phase: 'isolated' })
    expect(Object.isFrozen(CLOSED)).toBe(true)
    expect(Object.isFrozen(CLOSED.phase === 'closed' && CLOSED.suspects)).toBe(true)
    expect(Object.isFrozen(ISOLATED)).toBe(true)
  })
})

describe('the phase of a breaker', () => {
  test('is half-open as soon as its open time has passed', () => {
    expect(breakerPhase(open({ until: 20_000 }), 19_999)).toBe('open')
    expect(breakerPhase(open({ until: 20_000 }), 20_000)).toBe('halfOpen')
    expect(breakerPhase(open({ until: 20_000 }), 20_001)).toBe('halfOpen')
  })

  test('does not depend on time when closed or isolated', () => {
    for (const now of [0, 1, 1e15]) {
      expect(breakerPhase(CLOSED, now)).toBe('closed')
      expect(breakerPhase(ISOLATED, now)).toBe('isolated')
    }
  })
})

describe('a closed breaker that counts consecutive failures', () => {
  test('opens at the threshold and not one failure earlier', () => {
    const two = [unreachable(0, 'a'), unreachable(0, 'b')]
    expect(after(CONSECUTIVE, two)).toEqual({
      phase: 'closed',
      failures: 2,
      suspects: ['a', 'b'],
      windowFrom: 0,
      handled: 0,
    })
    expect(after(CONSECUTIVE, [...two, unreachable(0, 'c')])).toEqual({
      phase: 'open',
      since: 5_000,
      until: 6_000,
      successes: 0,
      suspects: ['a', 'b', 'c'],
      freshAt: 5_000,
    })
  })

  test('opens immediately with a threshold of one', () => {
    const policy: BreakerPolicy = { ...CONSECUTIVE, trip: { kind: 'consecutive', failures: 1 } }
    expect(after(policy, [unreachable()]).phase).toBe('open')
  })

  test('clears all failures and suspects on a success', () => {
    const failed = after(CONSECUTIVE, [unreachable(), unexplained('a')])
    expect(after(CONSECUTIVE, [handled()], { from: failed })).toEqual(CLOSED)
    const again = after(CONSECUTIVE, [handled(), unreachable(0, 'b'), unexplained('a')], {
      from: failed,
    })
    expect(again).toMatchObject({ phase: 'closed', failures: 2, suspects: ['b', 'a'] })
  })

  test('returns the same object after a success when nothing had failed', () => {
    const calm: BreakerState = {
      phase: 'closed',
      failures: 0,
      suspects: [],
      windowFrom: 7,
      handled: 0,
    }
    expect(nextBreaker(CONSECUTIVE, calm, handled(100), 5_000, noJitter)).toBe(calm)
    expect(nextBreaker(CONSECUTIVE, CLOSED, handled(), 5_000, noJitter)).toBe(CLOSED)
  })

  test('has no window: failures far apart are still consecutive', () => {
    let state = CLOSED
    for (const now of [0, 1e9, 2e9]) {
      state = nextBreaker(CONSECUTIVE, state, unreachable(), now, noJitter)
    }
    expect(state).toMatchObject({ phase: 'open', since: 2e9 })
  })

  test('counts a message once, whatever the kind of its failures', () => {
    const state = after(CONSECUTIVE, [unexplained('a'), unreachable(0, 'a'), unexplained('a')])
    expect(state).toEqual({
      phase: 'closed',
      failures: 1,
      suspects: ['a'],
      windowFrom: 0,
      handled: 0,
    })
  })

  test('opens when enough distinct messages fail without explanation', () => {
    const two = [unexplained('a'), unexplained('b')]
    expect(after(CONSECUTIVE, two)).toMatchObject({ failures: 2, suspects: ['a', 'b'] })
    expect(after(CONSECUTIVE, [...two, unexplained('c')])).toEqual({
      phase: 'open',
      since: 5_000,
      until: 6_000,
      successes: 0,
      suspects: ['a', 'b', 'c'],
      freshAt: 5_000,
    })
  })

  test('keeps the last 256 messages that failed', () => {
    const patient: BreakerPolicy = { ...CONSECUTIVE, trip: { kind: 'consecutive', failures: 999 } }
    const suspects = Array.from({ length: 255 }, (_, index) => `m${index}`)
    const from: BreakerState = {
      phase: 'closed',
      failures: 255,
      suspects,
      windowFrom: 0,
      handled: 0,
    }
    const full = after(patient, [unexplained('x')], { from })
    expect(full).toMatchObject({ failures: 256, suspects: [...suspects, 'x'] })
    const later = after(patient, [unexplained('y')], { from: full })
    expect(later).toMatchObject({ failures: 257, suspects: [...suspects.slice(1), 'x', 'y'] })
  })

  test('counts both kinds of failure together', () => {
    const state = after(CONSECUTIVE, [unexplained('a'), unreachable(0, 'b')])
    expect(state).toMatchObject({ phase: 'closed', failures: 2, suspects: ['a', 'b'] })
    expect(after(CONSECUTIVE, [unreachable()], { from: state }).phase).toBe('open')
  })

  test('does not change the given state', () => {
    const before = after(CONSECUTIVE, [unexplained('a')])
    const copy = structuredClone(before)
    after(CONSECUTIVE, [unexplained('b')], { from: before })
    expect(before).toEqual(copy)
  })
})

describe('a closed breaker that counts a ratio', () => {
  const window = (fields: Partial<Extract<BreakerState, { phase: 'closed' }>>): BreakerState => ({
    phase: 'closed',
    failures: 0,
    suspects: [],
    windowFrom: 1_000,
    handled: 0,
    ...fields,
  })

  test('adds up the successes', () => {
    expect(after(RATIO, [handled(3), handled()], { from: window({}) })).toEqual(
      window({ handled: 4 }),
    )
  })

  test('does not open below the minimum, however bad the ratio', () => {
    expect(after(RATIO, [unreachable(0, 'a')], { from: window({ failures: 2 }) })).toEqual(
      window({ failures: 3, suspects: ['a'] }),
    )
    expect(after(RATIO, [unreachable()], { from: window({ failures: 3 }) }).phase).toBe('open')
  })

  test('counts successes towards the minimum', () => {
    const from = window({ failures: 1, handled: 2 })
    expect(after(RATIO, [unreachable(0, 'a')], { from })).toEqual({
      phase: 'open',
      since: 5_000,
      until: 6_000,
      successes: 0,
      suspects: ['a'],
      freshAt: 5_000,
    })
  })

  test('opens when the ratio is reached, not below it', () => {
    // 4 of 9 is below one half, 4 of 8 is one half.
    const below = window({ failures: 3, handled: 5 })
    expect(after(RATIO, [unreachable(0, 'a')], { from: below })).toEqual(
      window({ failures: 4, suspects: ['a'], handled: 5 }),
    )
    expect(after(RATIO, [unreachable()], { from: window({ failures: 3, handled: 4 }) }).phase).toBe(
      'open',
    )
  })

  test('does not open on a success', () => {
    const state = after(RATIO, [handled()], { from: window({ failures: 3, handled: 0 }) })
    expect(state).toEqual(window({ failures: 3, handled: 1 }))
  })

  test('keeps counting until the window has passed and then starts again', () => {
    const from = window({ failures: 2, suspects: ['a'], handled: 5 })
    expect(after(RATIO, [unreachable(0, 'b')], { from, now: 10_999 })).toEqual(
      window({ failures: 3, suspects: ['a', 'b'], handled: 5 }),
    )
    expect(after(RATIO, [unreachable(0, 'b')], { from, now: 11_000 })).toEqual(
      window({ failures: 1, suspects: ['b'], windowFrom: 11_000 }),
    )
    expect(after(RATIO, [handled(2)], { from, now: 10_999 })).toEqual(
      window({ failures: 2, suspects: ['a'], handled: 7 }),
    )
    expect(after(RATIO, [handled(2)], { from, now: 11_000 })).toEqual(
      window({ handled: 2, windowFrom: 11_000 }),
    )
  })

  test('counts a message once per window', () => {
    const from = window({ failures: 1, suspects: ['a'], handled: 9 })
    expect(after(RATIO, [unexplained('a')], { from })).toBe(from)
    expect(after(RATIO, [unexplained('a')], { from, now: 11_000 })).toEqual(
      window({ failures: 1, suspects: ['a'], windowFrom: 11_000 }),
    )
  })
})

describe('how long a breaker stays open', () => {
  function openFor(
    policy: Partial<BreakerPolicy>,
    { since = 10_000, now = 10_000, input = unreachable(), random = noJitter } = {},
  ): number {
    const from = open({ since, until: now })
    const state = nextBreaker({ ...CONSECUTIVE, ...policy }, from, input, now, random)
    expect(state).toMatchObject({ phase: 'open', since, successes: 0 })
    return state.phase === 'open' ? state.until - now : Number.NaN
  }

  test('is at least the shortest time', () => {
    expect(openFor({}, { now: 10_000 })).toBe(1_000)
    expect(openFor({}, { now: 19_990 })).toBe(1_000)
  })

  test('is a share of the outage so far', () => {
    expect(openFor({}, { now: 20_010 })).toBe(1_001)
    expect(openFor({}, { now: 110_000 })).toBe(10_000)
    expect(openFor({ openShare: 0.2 }, { now: 110_000 })).toBe(20_000)
  })

  test('is at most the longest time', () => {
    expect(openFor({}, { now: 309_990 })).toBe(29_999)
    expect(openFor({}, { now: 310_010 })).toBe(30_000)
    expect(openFor({}, { now: 10_000_000 })).toBe(30_000)
  })

  test('is spread by a fifth to both sides', () => {
    expect(openFor({}, { random: () => 0 })).toBe(800)
    expect(openFor({}, { random: () => 0.25 })).toBe(900)
    expect(openFor({}, { random: () => 0.75 })).toBe(1_100)
    expect(openFor({}, { random: () => 0.999_999_999 })).toBe(1_200)
  })

  test('is in whole milliseconds', () => {
    expect(openFor({ minOpenMs: 3 }, { random: () => 0.1 })).toBe(3)
    expect(openFor({ minOpenMs: 3 }, { random: () => 0 })).toBe(2)
  })

  test('is the requested wait of the dependency when that is longer, up to the longest time', () => {
    expect(openFor({}, { input: unreachable(999) })).toBe(1_000)
    expect(openFor({}, { input: unreachable(1_001) })).toBe(1_001)
    expect(openFor({}, { input: unreachable(29_999) })).toBe(29_999)
    expect(openFor({}, { input: unreachable(86_400_000) })).toBe(30_000)
    expect(openFor({}, { input: unreachable(1_150), random: () => 0.999_999_999 })).toBe(1_200)
  })

  test('uses the requested wait also when it trips', () => {
    const state = after(CONSECUTIVE, [unreachable(), unreachable(), unreachable(7_000)])
    expect(state).toMatchObject({ phase: 'open', since: 5_000, until: 12_000, successes: 0 })
  })

  test('is not changed by an unexplained failure, which has no requested wait', () => {
    expect(openFor({}, { input: unexplained('a') })).toBe(1_000)
    expect(openFor({ minOpenMs: 0 }, { input: unexplained('a') })).toBe(0)
  })
})

describe('an open breaker', () => {
  test('ignores attempts that end before its time has passed', () => {
    const state = open()
    for (const input of [handled(100), unreachable(60_000), unexplained('a')]) {
      expect(nextBreaker(CONSECUTIVE, state, input, 19_999, noJitter)).toBe(state)
    }
  })
})

describe('a half-open breaker', () => {
  test('closes after enough consecutive successes and not one earlier', () => {
    const one = nextBreaker(CONSECUTIVE, open(), handled(), 20_000, noJitter)
    expect(one).toEqual(open({ successes: 1 }))
    expect(nextBreaker(CONSECUTIVE, one, handled(), 20_001, noJitter)).toBe(CLOSED)
  })

  test('counts successes reported together', () => {
    const policy = { ...CONSECUTIVE, successes: 5 }
    const state = nextBreaker(policy, open(), handled(4), 20_000, noJitter)
    expect(state).toEqual(open({ successes: 4 }))
    expect(nextBreaker(policy, open(), handled(5), 20_000, noJitter)).toBe(CLOSED)
    expect(nextBreaker(policy, state, handled(3), 20_000, noJitter)).toBe(CLOSED)
  })

  test('opens again when a probe does not reach the dependency, and keeps the start of the outage', () => {
    const from = open({ suspects: ['a'] })
    const again = { phase: 'open', since: 10_000, until: 43_000, successes: 0 }
    const afterProbe = (messageId: string) =>
      nextBreaker(CONSECUTIVE, from, unreachable(0, messageId), 40_000, noJitter)
    expect(afterProbe('a')).toEqual({ ...again, suspects: ['a'], freshAt: 10_000 })
    expect(afterProbe('b')).toEqual({ ...again, suspects: ['a', 'b'], freshAt: 40_000 })
  })

  test('stays half-open when a message fails again after another probe passed', () => {
    const from = open({ successes: 1, suspects: ['a'] })
    const afterProbe = (messageId: string) =>
      nextBreaker(CONSECUTIVE, from, unreachable(0, messageId), 40_000, noJitter)
    expect(afterProbe('a')).toBe(from)
    expect(afterProbe('b')).toMatchObject({ until: 43_000, successes: 0 })
  })

  test('opens again on an unexplained failure of a new message', () => {
    const from = open({ successes: 1, suspects: ['a'] })
    expect(nextBreaker(CONSECUTIVE, from, unexplained('b'), 40_000, noJitter)).toEqual({
      phase: 'open',
      since: 10_000,
      until: 43_000,
      successes: 0,
      suspects: ['a', 'b'],
      freshAt: 40_000,
    })
  })

  test('ignores a message whose unexplained failure it already counted', () => {
    const from = open({ successes: 1, suspects: ['a', 'b'] })
    expect(nextBreaker(CONSECUTIVE, from, unexplained('a'), 40_000, noJitter)).toBe(from)
    expect(nextBreaker(CONSECUTIVE, from, unexplained('b'), 40_000, noJitter)).toBe(from)
  })

  test('keeps the last 256 messages that kept it open', () => {
    const suspects = Array.from({ length: 255 }, (_, index) => `m${index}`)
    const full = nextBreaker(CONSECUTIVE, open({ suspects }), unexplained('x'), 40_000, noJitter)
    expect(full).toMatchObject({ suspects: [...suspects, 'x'] })
    const later = nextBreaker(CONSECUTIVE, full, unexplained('y'), 80_000, noJitter)
    expect(later).toMatchObject({ suspects: [...suspects.slice(1), 'x', 'y'] })
  })

  test('clears its suspects when it closes', () => {
    const from = open({ successes: 1, suspects: ['a'] })
    expect(nextBreaker(CONSECUTIVE, from, handled(), 40_000, noJitter)).toBe(CLOSED)
  })

  test('behaves the same when the policy counts a ratio', () => {
    expect(nextBreaker(RATIO, open({ successes: 1 }), handled(), 20_000, noJitter)).toBe(CLOSED)
    const failed = nextBreaker(RATIO, open({ successes: 1 }), unreachable(0, 'a'), 40_000, noJitter)
    expect(failed).toEqual(open({ until: 43_000, suspects: ['a'], freshAt: 40_000 }))
  })
})

describe('an isolated breaker', () => {
  test('stays isolated for every input', () => {
    for (const input of [handled(100), unreachable(), unexplained('a')]) {
      expect(nextBreaker(CONSECUTIVE, ISOLATED, input, 1e15, noJitter)).toBe(ISOLATED)
    }
  })
})
