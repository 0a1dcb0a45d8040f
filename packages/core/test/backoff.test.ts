import { describe, expect, test } from 'vitest'
import {
  type Backoff,
  type BackoffInput,
  decorrelated,
  delayAfter,
  exponential,
  fixed,
  type Jitter,
  linear,
  longestDelayMs,
  progressive,
} from '../src/backoff.ts'

function delay(backoff: Backoff, input: Partial<BackoffInput> = {}): number {
  return delayAfter(backoff, {
    attemptNumber: 1,
    failureClass: 'transient',
    lastDelayMs: 0,
    floorMs: 0,
    random: () => 0.5,
    ...input,
  })
}

function delays(backoff: Backoff, count: number, input: Partial<BackoffInput> = {}): number[] {
  return Array.from({ length: count }, (_, index) =>
    delay(backoff, { ...input, attemptNumber: index + 1 }),
  )
}

function fixedAt(delayMs: number, jitter: Jitter): Backoff {
  return { kind: 'fixed', delayMs, jitter }
}

describe('the helpers that write backoff options', () => {
  test('set no field that the user did not set', () => {
    expect(exponential()).toEqual({ kind: 'exponential' })
    expect(linear()).toEqual({ kind: 'linear' })
    expect(decorrelated()).toEqual({ kind: 'decorrelated' })
  })

  test('pass on the fields of the user', () => {
    expect(exponential({ base: '2s', factor: 3, cap: '1m', jitter: 'equal' })).toEqual({
      kind: 'exponential',
      base: '2s',
      factor: 3,
      cap: '1m',
      jitter: 'equal',
    })
    expect(linear({ base: '2s', step: '1s', cap: '1m', jitter: 'none' })).toEqual({
      kind: 'linear',
      base: '2s',
      step: '1s',
      cap: '1m',
      jitter: 'none',
    })
    expect(decorrelated({ base: '2s', cap: '1m' })).toEqual({
      kind: 'decorrelated',
      base: '2s',
      cap: '1m',
    })
    expect(progressive({ tiers: { unknown: ['1s'] }, otherwise: ['5s'], jitter: 'full' })).toEqual({
      kind: 'progressive',
      tiers: { unknown: ['1s'] },
      otherwise: ['5s'],
      jitter: 'full',
    })
  })

  test('make a fixed delay exact unless the user sets jitter', () => {
    expect(fixed('5s')).toEqual({ kind: 'fixed', delay: '5s', jitter: 'none' })
    expect(fixed('5s', { proportional: 0.1 })).toEqual({
      kind: 'fixed',
      delay: '5s',
      jitter: { proportional: 0.1 },
    })
  })
})

describe('the delay after a failed attempt', () => {
  test('stays at the cap when the power is too large for a number', () => {
    const backoff: Backoff = {
      kind: 'exponential',
      baseMs: 1_000,
      factor: 100,
      capMs: 60_000,
      jitter: 'none',
    }
    expect(delay(backoff, { attemptNumber: 1_000 })).toBe(60_000)
  })

  test.each<[how: string, backoff: Backoff, expected: readonly number[]]>([
    [
      'multiplies from base by factor up to the cap when exponential',
      { kind: 'exponential', baseMs: 100, factor: 3, capMs: 1_000, jitter: 'none' },
      [100, 300, 900, 1_000, 1_000],
    ],
    [
      'adds a step per attempt up to the cap when linear',
      { kind: 'linear', baseMs: 100, stepMs: 50, capMs: 220, jitter: 'none' },
      [100, 150, 200, 220, 220],
    ],
    ['is the same every time when fixed', fixedAt(700, 'none'), [700, 700, 700]],
  ])('%s', (_, backoff, expected) => {
    expect(delays(backoff, expected.length)).toEqual(expected)
  })

  test('follows the tiers of the failure class and repeats the last one when progressive', () => {
    const backoff: Backoff = {
      kind: 'progressive',
      tiersMs: { transient: [10, 20], unknown: [7] },
      otherwiseMs: [5, 50, 500],
      jitter: 'none',
    }
    expect(delays(backoff, 4, { failureClass: 'transient' })).toEqual([10, 20, 20, 20])
    expect(delays(backoff, 3, { failureClass: 'unknown' })).toEqual([7, 7, 7])
    expect(delays(backoff, 4, { failureClass: 'business' })).toEqual([5, 50, 500, 500])
  })

  test('is the minimum when there is no tier at all', () => {
    const backoff: Backoff = {
      kind: 'progressive',
      tiersMs: { transient: [] },
      otherwiseMs: [9],
      jitter: 'none',
    }
    expect(delay(backoff, { floorMs: 3 })).toBe(3)
    expect(delay(backoff, { floorMs: 0 })).toBe(0)
  })

  test.each<[Jitter, readonly [number, number, number]]>([
    ['none', [1_000, 1_000, 1_000]],
    ['full', [0, 250, 750]],
    ['equal', [500, 625, 875]],
    [{ proportional: 0.2 }, [800, 900, 1_100]],
    [{ proportional: 1 }, [0, 500, 1_500]],
    [{ proportional: 0 }, [1_000, 1_000, 1_000]],
  ])('with jitter %j is drawn from its range', (jitter, [lowest, quarter, threeQuarters]) => {
    const backoff = fixedAt(1_000, jitter)
    expect(delay(backoff, { random: () => 0 })).toBe(lowest)
    expect(delay(backoff, { random: () => 0.25 })).toBe(quarter)
    expect(delay(backoff, { random: () => 0.75 })).toBe(threeQuarters)
  })

  test('applies the jitter after the cap, so that messages at the cap are spread too', () => {
    const backoff: Backoff = {
      kind: 'exponential',
      baseMs: 100,
      factor: 10,
      capMs: 500,
      jitter: 'full',
    }
    expect(delay(backoff, { attemptNumber: 9, random: () => 0.5 })).toBe(250)
  })

  test('is whole milliseconds, rounded to the nearest', () => {
    expect(delay(fixedAt(10.4, 'none'))).toBe(10)
    expect(delay(fixedAt(10.5, 'none'))).toBe(11)
  })

  test('is never below the minimum, whatever the jitter draws', () => {
    const backoff = fixedAt(1_000, 'full')
    expect(delay(backoff, { floorMs: 10, random: () => 0 })).toBe(10)
    expect(delay(backoff, { floorMs: 10, random: () => 0.01 })).toBe(10)
    expect(delay(backoff, { floorMs: 10, random: () => 0.011 })).toBe(11)
  })

  test('draws one random number at most, and none when it is exact', () => {
    let draws = 0
    const random = () => {
      draws += 1
      return 0.5
    }
    delay(fixedAt(1_000, 'none'), { random })
    expect(draws).toBe(0)
    for (const jitter of ['full', 'equal', { proportional: 0.2 }] as const) {
      draws = 0
      delay(fixedAt(1_000, jitter), { random })
      expect(draws).toBe(1)
    }
  })
})

describe('the decorrelated delay', () => {
  const backoff: Backoff = { kind: 'decorrelated', baseMs: 100, capMs: 1_000 }

  test('is drawn between base and three times the last delay', () => {
    expect(delay(backoff, { lastDelayMs: 200, random: () => 0 })).toBe(100)
    expect(delay(backoff, { lastDelayMs: 200, random: () => 0.5 })).toBe(350)
    expect(delay(backoff, { lastDelayMs: 200, random: () => 0.999_999 })).toBe(600)
  })

  test('is drawn between base and three times base when there was no delay yet', () => {
    for (const lastDelayMs of [0, 30, 100]) {
      expect(delay(backoff, { lastDelayMs, random: () => 0 })).toBe(100)
      expect(delay(backoff, { lastDelayMs, random: () => 0.5 })).toBe(200)
      expect(delay(backoff, { lastDelayMs, random: () => 0.999_999 })).toBe(300)
    }
  })

  test('is limited by the cap', () => {
    expect(delay(backoff, { lastDelayMs: 1_000, random: () => 0.25 })).toBe(825)
    expect(delay(backoff, { lastDelayMs: 1_000, random: () => 0.5 })).toBe(1_000)
  })

  test('is never below base, however short the last delay was', () => {
    for (const random of [() => 0, () => 0.5, () => 0.999_999]) {
      expect(delay(backoff, { lastDelayMs: 30, random })).toBeGreaterThanOrEqual(100)
    }
  })

  test('does not depend on the attempt number', () => {
    expect(delays(backoff, 3, { lastDelayMs: 200 })).toEqual([350, 350, 350])
  })
})

describe('the longest delay of a backoff', () => {
  test('is the cap when exponential, linear or decorrelated', () => {
    expect(
      longestDelayMs({
        kind: 'exponential',
        baseMs: 1,
        factor: 2,
        capMs: 700,
        jitter: 'full',
      }),
    ).toBe(700)
    expect(
      longestDelayMs({ kind: 'linear', baseMs: 1, stepMs: 2, capMs: 800, jitter: 'equal' }),
    ).toBe(800)
    expect(longestDelayMs({ kind: 'decorrelated', baseMs: 1, capMs: 900 })).toBe(900)
  })

  test('is the delay itself when fixed', () => {
    expect(longestDelayMs(fixedAt(700, 'none'))).toBe(700)
    expect(longestDelayMs(fixedAt(700, 'full'))).toBe(700)
  })

  test('is the longest of all tiers when progressive', () => {
    const jitter = 'none'
    expect(
      longestDelayMs({
        kind: 'progressive',
        tiersMs: { transient: [10, 90, 20], unknown: [40] },
        otherwiseMs: [5, 50],
        jitter,
      }),
    ).toBe(90)
    expect(
      longestDelayMs({
        kind: 'progressive',
        tiersMs: { transient: [10] },
        otherwiseMs: [5, 50],
        jitter,
      }),
    ).toBe(50)
  })

  test('includes what proportional jitter adds, rounded up', () => {
    const jitter = { proportional: 0.5 }
    expect(longestDelayMs(fixedAt(1_000, jitter))).toBe(1_500)
    expect(longestDelayMs(fixedAt(5, jitter))).toBe(8)
    expect(longestDelayMs(fixedAt(11, { proportional: 0.1 }))).toBe(13)
    expect(longestDelayMs({ kind: 'progressive', tiersMs: {}, otherwiseMs: [1_000], jitter })).toBe(
      1_500,
    )
    expect(longestDelayMs({ kind: 'linear', baseMs: 1, stepMs: 2, capMs: 800, jitter })).toBe(1_200)
    expect(longestDelayMs({ kind: 'exponential', baseMs: 1, factor: 2, capMs: 800, jitter })).toBe(
      1_200,
    )
  })
})
