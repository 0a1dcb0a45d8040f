import fc from 'fast-check'
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

const openTimes = fc
  .tuple(fc.integer({ min: 1, max: 60_000 }), fc.integer({ min: 1, max: 60_000 }))
  .map(([a, b]) => ({ minOpenMs: Math.min(a, b), maxOpenMs: Math.max(a, b) }))
const consecutiveTrip = fc.record({
  kind: fc.constant('consecutive' as const),
  failures: fc.integer({ min: 1, max: 8 }),
})
const ratioTrip = fc.record({
  kind: fc.constant('ratio' as const),
  ratio: fc.double({ min: 0.01, max: 1, noNaN: true }),
  windowMs: fc.integer({ min: 100, max: 60_000 }),
  minimum: fc.integer({ min: 1, max: 30 }),
})

function policies(trip: fc.Arbitrary<BreakerPolicy['trip']>): fc.Arbitrary<BreakerPolicy> {
  return fc
    .tuple(
      trip,
      openTimes,
      fc.double({ min: 0, max: 1, noNaN: true }),
      fc.integer({ min: 1, max: 5 }),
    )
    .map(([chosen, times, openShare, successes]) => ({
      trip: chosen,
      ...times,
      openShare,
      probes: 1,
      successes,
    }))
}
const anyPolicy = policies(fc.oneof(consecutiveTrip, ratioTrip))

const anyInput: fc.Arbitrary<BreakerInput> = fc.oneof(
  fc.record({ kind: fc.constant('handled' as const), count: fc.integer({ min: 1, max: 3 }) }),
  fc.record({
    kind: fc.constant('unreachable' as const),
    retryAfterMs: fc.oneof(fc.constant(0), fc.nat({ max: 100_000 })),
  }),
  fc.record({
    kind: fc.constant('unexplained' as const),
    messageId: fc.constantFrom('a', 'b', 'c', 'd', 'e'),
  }),
)

interface Happening {
  readonly input: BreakerInput
  readonly afterMs: number
  readonly chance: number
}
const story: fc.Arbitrary<Happening[]> = fc.array(
  fc.record({
    input: anyInput,
    afterMs: fc.oneof(fc.nat({ max: 50 }), fc.nat({ max: 100_000 })),
    chance: fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
  }),
  { minLength: 1, maxLength: 80 },
)

interface Moment extends Happening {
  readonly before: BreakerState
  readonly after: BreakerState
  readonly now: number
}

function live(policy: BreakerPolicy, happenings: readonly Happening[]): Moment[] {
  const moments: Moment[] = []
  let before = CLOSED
  let now = 1_700_000_000_000
  for (const happening of happenings) {
    now += happening.afterMs
    const { input, chance } = happening
    const after = nextBreaker(policy, before, input, now, () => chance)
    moments.push({ ...happening, before, after, now })
    before = after
  }
  return moments
}

describe('a breaker, whatever happens to it', () => {
  test('closes only after enough successes since it last opened', () => {
    fc.assert(
      fc.property(anyPolicy, story, (policy, happenings) => {
        let successes = 0
        for (const { before, after, input, now } of live(policy, happenings)) {
          if (breakerPhase(before, now) !== 'halfOpen') successes = 0
          else if (input.kind === 'handled') successes += input.count
          else if (after !== before) successes = 0
          if (before.phase !== 'open') continue
          const isEnough = successes >= policy.successes
          expect(after.phase).toBe(isEnough ? 'closed' : 'open')
          expect(after.phase === 'open' ? after.successes : successes).toBe(successes)
        }
      }),
    )
  })

  test('is opened again by one failure while half-open, and the outage goes on', () => {
    fc.assert(
      fc.property(anyPolicy, story, (policy, happenings) => {
        for (const { before, after, input, now } of live(policy, happenings)) {
          if (breakerPhase(before, now) !== 'halfOpen' || before.phase !== 'open') continue
          if (input.kind === 'handled') continue
          if (input.kind === 'unexplained' && before.suspects.includes(input.messageId)) continue
          expect(after).toMatchObject({ phase: 'open', since: before.since, successes: 0 })
          expect(after.phase === 'open' && after.until).toBeGreaterThanOrEqual(now)
        }
      }),
    )
  })

  test('does not move before its open time has passed', () => {
    fc.assert(
      fc.property(anyPolicy, story, (policy, happenings) => {
        for (const { before, after, now } of live(policy, happenings)) {
          if (breakerPhase(before, now) !== 'open') continue
          expect(after).toBe(before)
        }
      }),
    )
  })

  test('stays open between its shortest and longest time give or take a fifth, or as long as it was asked', () => {
    fc.assert(
      fc.property(anyPolicy, story, (policy, happenings) => {
        for (const { before, after, input, now } of live(policy, happenings)) {
          if (after.phase !== 'open' || input.kind === 'handled' || after === before) continue
          const openMs = after.until - now
          const askedMs = input.kind === 'unreachable' ? input.retryAfterMs : 0
          expect(openMs).toBeGreaterThanOrEqual(Math.max(askedMs, policy.minOpenMs * 0.8) - 0.5)
          expect(openMs).toBeLessThanOrEqual(Math.max(askedMs, policy.maxOpenMs * 1.2) + 0.5)
        }
      }),
    )
  })

  test('is opened by a failure only, never by a success or by time', () => {
    fc.assert(
      fc.property(anyPolicy, story, (policy, happenings) => {
        for (const { before, after, input } of live(policy, happenings)) {
          if (before.phase !== 'closed' || after.phase !== 'open') continue
          expect(input.kind).not.toBe('handled')
        }
      }),
    )
  })

  test('counts no more suspects than failures, each one once', () => {
    fc.assert(
      fc.property(anyPolicy, story, (policy, happenings) => {
        for (const { after } of live(policy, happenings)) {
          if (after.phase === 'isolated') continue
          expect(new Set(after.suspects).size).toBe(after.suspects.length)
          if (after.phase !== 'closed') continue
          expect(after.suspects.length).toBeLessThanOrEqual(after.failures)
        }
      }),
    )
  })

  test('behaves the same after a round trip through JSON', () => {
    fc.assert(
      fc.property(anyPolicy, story, (policy, happenings) => {
        for (const { before, after, input, now, chance } of live(policy, happenings)) {
          const restored = JSON.parse(JSON.stringify(before)) as BreakerState
          expect(restored).toEqual(before)
          expect(nextBreaker(policy, restored, input, now, () => chance)).toEqual(after)
        }
      }),
    )
  })

  test('stays isolated once a person isolated it', () => {
    fc.assert(
      fc.property(anyPolicy, story, (policy, happenings) => {
        for (const { input, now } of live(policy, happenings)) {
          expect(nextBreaker(policy, ISOLATED, input, now, () => 0.5)).toBe(ISOLATED)
        }
      }),
    )
  })
})

describe('one message that fails without explanation, alone', () => {
  const failures = fc.array(fc.nat({ max: 100_000 }), { minLength: 1, maxLength: 100 })

  function failAgainAndAgain(policy: BreakerPolicy, waits: readonly number[]): void {
    const input = { kind: 'unexplained', messageId: 'poison' } as const
    const happenings = waits.map((afterMs) => ({ input, afterMs, chance: 0.5 }))
    for (const { after } of live(policy, happenings)) {
      expect(after).toMatchObject({ phase: 'closed', failures: 1, suspects: ['poison'] })
    }
  }

  test('never opens a breaker that needs two failures in a row', () => {
    const needsTwo = policies(
      fc.record({
        kind: fc.constant('consecutive' as const),
        failures: fc.integer({ min: 2, max: 10_000 }),
      }),
    )
    fc.assert(fc.property(needsTwo, failures, failAgainAndAgain))
  })

  test('never opens a breaker that needs two outcomes in its window', () => {
    const needsTwo = policies(
      fc.record({
        kind: fc.constant('ratio' as const),
        ratio: fc.double({ min: 0.01, max: 1, noNaN: true }),
        windowMs: fc.integer({ min: 100, max: 60_000 }),
        minimum: fc.integer({ min: 2, max: 1_000 }),
      }),
    )
    fc.assert(fc.property(needsTwo, failures, failAgainAndAgain))
  })
})

describe('one bad message on a source that has nothing else', () => {
  test('cannot keep a half-open breaker open for good', () => {
    fc.assert(
      fc.property(anyPolicy, fc.integer({ min: 2, max: 50 }), (policy, probes) => {
        const input = { kind: 'unexplained', messageId: 'poison' } as const
        let state: BreakerState = {
          phase: 'open',
          since: 0,
          until: 1_000,
          successes: 0,
          suspects: [],
        }
        const untils = new Set<number>()
        for (let probe = 1; probe <= probes; probe += 1) {
          state = nextBreaker(policy, state, input, probe * 1_000_000, () => 0.5)
          untils.add(state.phase === 'open' ? state.until : Number.NaN)
        }
        expect(untils.size).toBe(1)
      }),
    )
  })
})

describe('a breaker that counts failures in a row', () => {
  test('opens exactly when a plain counter of certain failures reaches the threshold', () => {
    const certain = story.map((happenings) =>
      happenings.filter(({ input }) => input.kind !== 'unexplained'),
    )
    fc.assert(
      fc.property(policies(consecutiveTrip), certain, (policy, happenings) => {
        let inRow = 0
        for (const { before, after, input } of live(policy, happenings)) {
          if (before.phase !== 'closed') {
            inRow = 0
            continue
          }
          inRow = input.kind === 'handled' ? 0 : inRow + 1
          const threshold = policy.trip.kind === 'consecutive' ? policy.trip.failures : 0
          expect(after.phase).toBe(inRow >= threshold ? 'open' : 'closed')
        }
      }),
    )
  })
})
