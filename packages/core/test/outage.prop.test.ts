import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  hasServedOthers,
  isSick,
  NO_OUTAGE,
  type OutagePolicy,
  type OutageState,
  outageHandled,
  outageUnexplained,
  outageUnreachable,
} from '../src/outage.ts'

const anyPolicy: fc.Arbitrary<OutagePolicy> = fc.record({
  ratio: fc.double({ min: 0.01, max: 1, noNaN: true }),
  failures: fc.integer({ min: 2, max: 200 }),
  windowMs: fc.integer({ min: 100, max: 3_600_000 }),
})

type Happening = { readonly afterMs: number } & (
  | { readonly kind: 'handled'; readonly count: number }
  | { readonly kind: 'unreachable' }
  | { readonly kind: 'unexplained'; readonly messageId: string }
)
const afterMs = fc.oneof(fc.constant(0), fc.nat({ max: 50 }), fc.nat({ max: 5_000 }))
const anyHandled = fc.record({
  kind: fc.constant('handled' as const),
  count: fc.integer({ min: 1, max: 5 }),
  afterMs,
})
const anyUnreachable = fc.record({ kind: fc.constant('unreachable' as const), afterMs })
const anyUnexplained = fc.record({
  kind: fc.constant('unexplained' as const),
  messageId: fc.nat({ max: 400 }).map(String),
  afterMs,
})
const bounds = { minLength: 1, maxLength: 120 }
const story = fc.array(fc.oneof(anyHandled, anyUnreachable, anyUnexplained), bounds)
const storyOfMessages = fc.array(fc.oneof(anyHandled, anyUnexplained), bounds)

const START = 1_700_000_000_000

function step(policy: OutagePolicy, state: OutageState, happening: Happening, now: number) {
  switch (happening.kind) {
    case 'handled':
      return outageHandled(policy, state, { count: happening.count, at: now }, now)
    case 'unreachable':
      return outageUnreachable(policy, state, now)
    case 'unexplained':
      return outageUnexplained(policy, state, happening.messageId, now)
  }
}

function withIds(
  happenings: readonly Happening[],
  rename: (messageId: string) => string,
): Happening[] {
  return happenings.map((one) =>
    one.kind === 'unexplained' ? { ...one, messageId: rename(one.messageId) } : one,
  )
}

function live(policy: OutagePolicy, happenings: readonly Happening[]) {
  let now = START
  let before: OutageState = NO_OUTAGE
  return happenings.map((happening) => {
    now += happening.afterMs
    const after = step(policy, before, happening, now)
    const moment = { happening, before, after, now }
    before = after
    return moment
  })
}

describe('the outage window, whatever happens', () => {
  test('never calls a dependency sick because of one bad message', () => {
    fc.assert(
      fc.property(anyPolicy, storyOfMessages, (policy, happenings) => {
        for (const { after, now } of live(
          policy,
          withIds(happenings, () => 'poison'),
        )) {
          expect(isSick(policy, after, now)).toBe(false)
        }
      }),
    )
  })

  test('calls a dependency well while fewer distinct messages than needed fail', () => {
    fc.assert(
      fc.property(anyPolicy, storyOfMessages, (policy, happenings) => {
        const few = withIds(happenings, (id) => String(Number(id) % (policy.failures - 1)))
        for (const { after, now } of live(policy, few)) {
          expect(isSick(policy, after, now)).toBe(false)
        }
      }),
    )
  })

  test.each(['unexplained', 'unreachable'] as const)(
    'calls a dependency sick when enough failures come together: %s',
    (kind) => {
      fc.assert(
        fc.property(anyPolicy, (policy) => {
          const all = Array.from({ length: policy.failures }, (_, index) => ({
            kind,
            messageId: String(index),
            afterMs: 0,
          }))
          for (const [index, { after, now }] of live(policy, all).entries()) {
            expect(isSick(policy, after, now)).toBe(index + 1 >= policy.failures)
          }
        }),
      )
    },
  )

  test('counts all of the last half window, and nothing older than one and a half', () => {
    fc.assert(
      fc.property(anyPolicy, story, (policy, happenings) => {
        const moments = live(policy, happenings)
        for (const [index, { after, now }] of moments.entries()) {
          const since = (ms: number) =>
            totals(
              moments
                .slice(0, index + 1)
                .filter((one) => now - one.now < ms)
                .map((one) => one.happening),
            )
          const least = since(policy.windowMs / 2)
          const most = since(policy.windowMs * 1.5)
          const suspects = [...after.now.suspects, ...after.before.suspects]
          expect(suspects).toEqual(expect.arrayContaining(least.suspects))
          expect(most.suspects).toEqual(expect.arrayContaining(suspects))
          for (const kind of ['handled', 'unreachable'] as const) {
            const counted = after.now[kind] + after.before[kind]
            expect(counted).toBeGreaterThanOrEqual(least[kind])
            expect(counted).toBeLessThanOrEqual(most[kind])
          }
        }
      }),
    )
  })

  test('forgets an outage that is over', () => {
    fc.assert(
      fc.property(anyPolicy, story, (policy, happenings) => {
        for (const { after, now } of live(policy, happenings)) {
          expect(isSick(policy, after, now + policy.windowMs)).toBe(false)
        }
      }),
    )
  })

  test('has a proof of service exactly when a success came after the wait began', () => {
    fc.assert(
      fc.property(anyPolicy, story, fc.nat({ max: 20_000 }), (policy, happenings, waitedMs) => {
        const moments = live(policy, happenings)
        for (const [index, { after, now }] of moments.entries()) {
          const served = moments
            .slice(0, index + 1)
            .some((one) => one.happening.kind === 'handled' && one.now > now - waitedMs)
          expect(hasServedOthers(after, waitedMs, now)).toBe(served)
        }
      }),
    )
  })

  test('is bounded, however many messages fail', () => {
    fc.assert(
      fc.property(anyPolicy, fc.nat({ max: 2_000 }), (policy, count) => {
        let state: OutageState = NO_OUTAGE
        for (let index = 0; index < count; index += 1) {
          state = outageUnexplained(policy, state, String(index), START + index)
        }
        expect(state.now.suspects.length).toBeLessThanOrEqual(256)
        expect(state.before.suspects.length).toBeLessThanOrEqual(256)
      }),
      { numRuns: 30 },
    )
  })

  test('is not changed by asking', () => {
    fc.assert(
      fc.property(anyPolicy, story, (policy, happenings) => {
        for (const { after, now } of live(policy, happenings)) {
          const copy = structuredClone(after)
          isSick(policy, after, now + policy.windowMs)
          expect(after).toEqual(copy)
        }
      }),
    )
  })

  test('behaves the same after a round trip through JSON', () => {
    fc.assert(
      fc.property(anyPolicy, story, (policy, happenings) => {
        for (const { happening, before, after, now } of live(policy, happenings)) {
          const restored = JSON.parse(JSON.stringify(before)) as OutageState
          expect(restored).toEqual(before)
          expect(step(policy, restored, happening, now)).toEqual(after)
          expect(isSick(policy, restored, now)).toBe(isSick(policy, before, now))
        }
      }),
    )
  })
})

function totals(happenings: readonly Happening[]) {
  return {
    handled: happenings.reduce((sum, one) => sum + (one.kind === 'handled' ? one.count : 0), 0),
    unreachable: happenings.filter((one) => one.kind === 'unreachable').length,
    suspects: happenings.flatMap((one) => (one.kind === 'unexplained' ? one.messageId : [])),
  }
}
