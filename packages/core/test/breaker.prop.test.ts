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

const messageId = fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f', 'g')
const anyInput: fc.Arbitrary<BreakerInput> = fc.oneof(
  fc.record({ kind: fc.constant('handled' as const), count: fc.integer({ min: 1, max: 3 }) }),
  fc.record({
    kind: fc.constant('unreachable' as const),
    messageId,
    retryAfterMs: fc.oneof(fc.constant(0), fc.nat({ max: 100_000 })),
  }),
  fc.record({
    kind: fc.constant('unexplained' as const),
    messageId,
  }),
)

interface TimedInput {
  readonly input: BreakerInput
  readonly afterMs: number
  readonly chance: number
}
const anyInputs: fc.Arbitrary<TimedInput[]> = fc.array(
  fc.record({
    input: anyInput,
    afterMs: fc.oneof(fc.nat({ max: 50 }), fc.nat({ max: 100_000 })),
    chance: fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
  }),
  { minLength: 1, maxLength: 80 },
)

interface Transition extends TimedInput {
  readonly before: BreakerState
  readonly after: BreakerState
  readonly now: number
}

function applyAll(policy: BreakerPolicy, timedInputs: readonly TimedInput[]): Transition[] {
  const transitions: Transition[] = []
  let before = CLOSED
  let now = 1_700_000_000_000
  for (const timedInput of timedInputs) {
    now += timedInput.afterMs
    const { input, chance } = timedInput
    const after = nextBreaker(policy, before, input, now, () => chance)
    transitions.push({ ...timedInput, before, after, now })
    before = after
  }
  return transitions
}

describe('a breaker, for any sequence of results', () => {
  test('closes only after enough successes since it last opened', () => {
    fc.assert(
      fc.property(anyPolicy, anyInputs, (policy, timedInputs) => {
        let successes = 0
        for (const { before, after, input, now } of applyAll(policy, timedInputs)) {
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

  test('opens again after one failure that shows something about the dependency, and the outage continues', () => {
    fc.assert(
      fc.property(anyPolicy, anyInputs, (policy, timedInputs) => {
        for (const { before, after, input, now } of applyAll(policy, timedInputs)) {
          if (breakerPhase(before, now) !== 'halfOpen' || before.phase !== 'open') continue
          if (input.kind === 'handled') continue
          const isKnown = before.suspects.includes(input.messageId)
          if (isKnown && (input.kind === 'unexplained' || before.successes > 0)) continue
          expect(after).toMatchObject({ phase: 'open', since: before.since, successes: 0 })
          expect(after.phase === 'open' && after.until).toBeGreaterThanOrEqual(now)
        }
      }),
    )
  })

  test('does not change before its open time has passed', () => {
    fc.assert(
      fc.property(anyPolicy, anyInputs, (policy, timedInputs) => {
        for (const { before, after, now } of applyAll(policy, timedInputs)) {
          if (breakerPhase(before, now) !== 'open') continue
          expect(after).toBe(before)
        }
      }),
    )
  })

  test('stays open between its shortest and longest time ±20 %, and for the requested wait up to the longest', () => {
    fc.assert(
      fc.property(anyPolicy, anyInputs, (policy, timedInputs) => {
        for (const { before, after, input, now } of applyAll(policy, timedInputs)) {
          if (after.phase !== 'open' || input.kind === 'handled' || after === before) continue
          const openMs = after.until - now
          const askedMs = input.kind === 'unreachable' ? input.retryAfterMs : 0
          const leastMs = Math.max(Math.min(askedMs, policy.maxOpenMs), policy.minOpenMs * 0.8)
          expect(openMs).toBeGreaterThanOrEqual(leastMs - 0.5)
          expect(openMs).toBeLessThanOrEqual(policy.maxOpenMs * 1.2 + 0.5)
        }
      }),
    )
  })

  test('opens only on a failure, never on a success or with time', () => {
    fc.assert(
      fc.property(anyPolicy, anyInputs, (policy, timedInputs) => {
        for (const { before, after, input } of applyAll(policy, timedInputs)) {
          if (before.phase !== 'closed' || after.phase !== 'open') continue
          expect(input.kind).not.toBe('handled')
        }
      }),
    )
  })

  test('counts no more suspects than failures, each suspect once', () => {
    fc.assert(
      fc.property(anyPolicy, anyInputs, (policy, timedInputs) => {
        for (const { after } of applyAll(policy, timedInputs)) {
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
      fc.property(anyPolicy, anyInputs, (policy, timedInputs) => {
        for (const { before, after, input, now, chance } of applyAll(policy, timedInputs)) {
          const restored = JSON.parse(JSON.stringify(before)) as BreakerState
          expect(restored).toEqual(before)
          expect(nextBreaker(policy, restored, input, now, () => chance)).toEqual(after)
        }
      }),
    )
  })

  test('stays isolated after an operator isolated it', () => {
    fc.assert(
      fc.property(anyPolicy, anyInputs, (policy, timedInputs) => {
        for (const { input, now } of applyAll(policy, timedInputs)) {
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
    const timedInputs = waits.map((afterMs) => ({ input, afterMs, chance: 0.5 }))
    for (const { after } of applyAll(policy, timedInputs)) {
      expect(after).toMatchObject({ phase: 'closed', failures: 1, suspects: ['poison'] })
    }
  }

  test('never opens a breaker that needs two consecutive failures', () => {
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

describe('one bad message on a source without other messages', () => {
  test('cannot keep a half-open breaker open forever', () => {
    fc.assert(
      fc.property(anyPolicy, fc.integer({ min: 2, max: 50 }), (policy, probes) => {
        const input = { kind: 'unexplained', messageId: 'poison' } as const
        let state: BreakerState = {
          phase: 'open',
          since: 0,
          until: 1_000,
          successes: 0,
          suspects: [],
          freshAt: 0,
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

describe('a breaker that counts consecutive failures', () => {
  test('opens exactly when as many distinct messages failed in a row as the threshold', () => {
    fc.assert(
      fc.property(policies(consecutiveTrip), anyInputs, (policy, timedInputs) => {
        const inRow = new Set<string>()
        for (const { before, after, input } of applyAll(policy, timedInputs)) {
          if (before.phase !== 'closed') {
            inRow.clear()
            continue
          }
          if (input.kind === 'handled') inRow.clear()
          else inRow.add(input.messageId)
          const threshold = policy.trip.kind === 'consecutive' ? policy.trip.failures : 0
          expect(after.phase).toBe(inRow.size >= threshold ? 'open' : 'closed')
        }
      }),
    )
  })
})
