import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Backoff, delayAfter, type Jitter, longestDelayMs } from '../src/backoff.ts'
import { FAILURE_CLASSES, type FailureClass } from '../src/failure.ts'

const ms = fc.integer({ min: 1, max: 3_600_000 })
const tiers = fc.array(ms, { minLength: 1, maxLength: 6 })
const jitter: fc.Arbitrary<Jitter> = fc.oneof(
  fc.constantFrom<Jitter>('none', 'full', 'equal'),
  fc.record({ proportional: fc.double({ min: 0, max: 1, noNaN: true }) }),
)
/** Base is never above cap, because the policy rejects that. */
const baseAndCap = fc.tuple(ms, ms).map(([a, b]) => ({
  baseMs: Math.min(a, b),
  capMs: Math.max(a, b),
}))
const anyBackoff: fc.Arbitrary<Backoff> = fc.oneof(
  fc.tuple(baseAndCap, fc.double({ min: 1, max: 100, noNaN: true }), jitter).map(
    ([range, factor, spread]): Backoff => ({
      kind: 'exponential',
      ...range,
      factor,
      jitter: spread,
    }),
  ),
  fc.tuple(baseAndCap, ms, jitter).map(
    ([range, stepMs, spread]): Backoff => ({
      kind: 'linear',
      ...range,
      stepMs,
      jitter: spread,
    }),
  ),
  fc.record({ kind: fc.constant('fixed' as const), delayMs: ms, jitter }),
  baseAndCap.map((range): Backoff => ({ kind: 'decorrelated', ...range })),
  fc
    .tuple(
      fc.dictionary(fc.constantFrom(...FAILURE_CLASSES), tiers) as fc.Arbitrary<
        Partial<Record<FailureClass, number[]>>
      >,
      tiers,
      jitter,
    )
    .map(
      ([tiersMs, otherwiseMs, spread]): Backoff => ({
        kind: 'progressive',
        tiersMs,
        otherwiseMs,
        jitter: spread,
      }),
    ),
)
const chance = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })
const anyInput = fc.record({
  attemptNumber: fc.integer({ min: 1, max: 1_000 }),
  failureClass: fc.constantFrom(...FAILURE_CLASSES),
  lastDelayMs: fc.oneof(fc.constant(0), ms),
  floorMs: fc.integer({ min: 1, max: 10_000 }),
  random: chance.map((value) => () => value),
})

describe('the delay after a failed attempt', () => {
  test('is a whole number between the minimum and the longest delay, for every backoff', () => {
    fc.assert(
      fc.property(anyBackoff, anyInput, (backoff, input) => {
        const delayMs = delayAfter(backoff, input)
        expect(Number.isInteger(delayMs)).toBe(true)
        expect(delayMs).toBeGreaterThanOrEqual(input.floorMs)
        expect(delayMs).toBeLessThanOrEqual(Math.max(input.floorMs, longestDelayMs(backoff)))
      }),
      { numRuns: 1_000 },
    )
  })

  test('lies within the range of its jitter around the delay without jitter', () => {
    fc.assert(
      fc.property(anyBackoff, anyInput, (backoff, input) => {
        fc.pre(backoff.kind !== 'decorrelated')
        const exactMs = delayAfter({ ...backoff, jitter: 'none' }, { ...input, floorMs: 0 })
        const delayMs = delayAfter(backoff, { ...input, floorMs: 0 })
        const [low, high] = rangeOf(exactMs, backoff.jitter)
        expect(delayMs).toBeGreaterThanOrEqual(low - 2)
        expect(delayMs).toBeLessThanOrEqual(high + 2)
      }),
    )
  })

  test('never decreases with the attempts when it grows and the draw is the same', () => {
    fc.assert(
      fc.property(anyBackoff, anyInput, (backoff, input) => {
        fc.pre(backoff.kind === 'exponential' || backoff.kind === 'linear')
        const next = { ...input, attemptNumber: input.attemptNumber + 1 }
        expect(delayAfter(backoff, next)).toBeGreaterThanOrEqual(delayAfter(backoff, input))
      }),
    )
  })

  test('never decreases when the draw is higher', () => {
    fc.assert(
      fc.property(anyBackoff, anyInput, chance, chance, (backoff, input, one, other) => {
        const low = delayAfter(backoff, { ...input, random: () => Math.min(one, other) })
        const high = delayAfter(backoff, { ...input, random: () => Math.max(one, other) })
        expect(low).toBeLessThanOrEqual(high)
      }),
    )
  })

  test('reaches both ends of the range with the lowest and the highest draw', () => {
    fc.assert(
      fc.property(ms, jitter, (delayMs, spread) => {
        const backoff: Backoff = { kind: 'fixed', delayMs, jitter: spread }
        const input = {
          attemptNumber: 1,
          failureClass: 'transient' as const,
          lastDelayMs: 0,
          floorMs: 0,
        }
        const [low, high] = rangeOf(delayMs, spread)
        expect(delayAfter(backoff, { ...input, random: () => 0 })).toBeCloseTo(low, -0.5)
        expect(delayAfter(backoff, { ...input, random: () => 1 - 2 ** -53 })).toBeCloseTo(
          high,
          -0.5,
        )
      }),
    )
  })
})

describe('the decorrelated delay', () => {
  test('stays between base and three times the last delay, and below the cap', () => {
    fc.assert(
      fc.property(baseAndCap, ms, chance, ({ baseMs, capMs }, lastDelayMs, draw) => {
        const delayMs = delayAfter(
          { kind: 'decorrelated', baseMs, capMs },
          {
            attemptNumber: 1,
            failureClass: 'unknown',
            lastDelayMs,
            floorMs: 0,
            random: () => draw,
          },
        )
        expect(delayMs).toBeGreaterThanOrEqual(baseMs)
        expect(delayMs).toBeLessThanOrEqual(capMs)
        expect(delayMs).toBeLessThanOrEqual(3 * Math.max(baseMs, lastDelayMs))
      }),
    )
  })

  test('reaches the cap with a chain of highest draws', () => {
    fc.assert(
      fc.property(baseAndCap, ({ baseMs, capMs }) => {
        let lastDelayMs = baseMs
        for (let attemptNumber = 2; attemptNumber < 20; attemptNumber += 1) {
          const next = delayAfter(
            { kind: 'decorrelated', baseMs, capMs },
            {
              attemptNumber,
              failureClass: 'unknown',
              lastDelayMs,
              floorMs: 0,
              random: () => 1 - 2 ** -53,
            },
          )
          expect(next).toBe(Math.min(capMs, lastDelayMs * 3))
          lastDelayMs = next
        }
        expect(lastDelayMs).toBe(capMs)
      }),
    )
  })
})

describe('many messages that fail together', () => {
  test.each<[Jitter, number, number]>([
    ['full', 0, 1_000],
    ['equal', 500, 1_000],
    [{ proportional: 0.2 }, 800, 1_200],
  ])('with jitter %j is spread evenly over the range', (spread, low, high) => {
    const random = seeded(20_240_607)
    const backoff: Backoff = { kind: 'fixed', delayMs: 1_000, jitter: spread }
    const crowd = Array.from({ length: 20_000 }, () =>
      delayAfter(backoff, {
        attemptNumber: 1,
        failureClass: 'transient',
        lastDelayMs: 0,
        floorMs: 0,
        random,
      }),
    )
    const width = (high - low) / 10
    const tenths = Array.from<number>({ length: 10 }).fill(0)
    for (const delayMs of crowd) {
      const tenth = Math.min(9, Math.floor((delayMs - low) / width))
      tenths[tenth] = (tenths[tenth] ?? 0) + 1
    }
    const mean = crowd.reduce((sum, one) => sum + one, 0) / crowd.length
    expect(Math.abs(mean - (low + high) / 2)).toBeLessThan((high - low) * 0.01)
    // 2,000 expected in each; 200 is more than four standard deviations.
    for (const count of tenths) expect(Math.abs(count - 2_000)).toBeLessThan(200)
  })
})

function rangeOf(delayMs: number, spread: Jitter): readonly [number, number] {
  if (spread === 'none') return [delayMs, delayMs]
  if (spread === 'full') return [0, delayMs]
  if (spread === 'equal') return [delayMs / 2, delayMs]
  return [delayMs * (1 - spread.proportional), delayMs * (1 + spread.proportional)]
}

/** mulberry32: the same random numbers on every run. */
function seeded(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}
