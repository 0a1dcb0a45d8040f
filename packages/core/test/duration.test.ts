import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { formatDuration, parseDuration } from '../src/duration.ts'

describe('parsing a duration', () => {
  test.each([
    ['0ms', 0],
    ['1ms', 1],
    ['250ms', 250],
    ['5s', 5_000],
    ['2m', 120_000],
    ['1h', 3_600_000],
    ['7d', 604_800_000],
    ['10s', 10_000],
    ['1.5s', 1_500],
    ['0.25h', 900_000],
    ['12.75s', 12_750],
  ])('reads %s as %d ms', (text, ms) => {
    expect(parseDuration(text)).toBe(ms)
  })

  test.each([0, 1, 86_400_000])('takes the number %d as milliseconds', (value) => {
    expect(parseDuration(value)).toBe(value)
  })

  test.each<[number | string, number]>([
    [1.5, 2],
    [1.49, 1],
    [0.4, 0],
    ['0.5ms', 1],
    ['0.4ms', 0],
    ['1.2345s', 1_235],
    ['1.2344s', 1_234],
  ])('rounds %s to %d whole milliseconds', (value, ms) => {
    expect(parseDuration(value)).toBe(ms)
  })

  test('rejects a text with an infinite number', () => {
    expect(parseDuration(`${'9'.repeat(400)}ms`)).toBeUndefined()
    expect(parseDuration(`${'9'.repeat(305)}d`)).toBeUndefined()
  })

  test.each([-1, -0.001, Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY])(
    'rejects the number %d',
    (value) => {
      expect(parseDuration(value)).toBeUndefined()
    },
  )

  test.each([
    '',
    '5',
    's',
    'ms',
    '5 s',
    ' 5s',
    '5s ',
    '5s\n',
    'x5s',
    '5sx',
    '5S',
    '-5s',
    '+5s',
    '1e3ms',
    '.5s',
    '5.s',
    '1.2.3s',
    '1x5s',
    '5w',
    '5min',
    'as',
    '1.as',
  ])('rejects the text %j', (text) => {
    expect(parseDuration(text)).toBeUndefined()
  })

  test.each([[undefined], [null], [true], [[5]], [['5s']], [{}], [5n], [new String('5s')]])(
    'rejects %o, which is neither a number nor text',
    (value) => {
      expect(parseDuration(value)).toBeUndefined()
    },
  )
})

describe('formatting a duration', () => {
  test.each([
    [0, '0ms'],
    [1, '1ms'],
    [999, '999ms'],
    [1_000, '1s'],
    [1_001, '1001ms'],
    [1_500, '1500ms'],
    [59_000, '59s'],
    [60_000, '1m'],
    [61_000, '61s'],
    [90_000, '90s'],
    [3_540_000, '59m'],
    [3_600_000, '1h'],
    [3_660_000, '61m'],
    [5_400_000, '90m'],
    [82_800_000, '23h'],
    [86_400_000, '1d'],
    [90_000_000, '25h'],
    [1_209_600_000, '14d'],
    [0.5, '0.5ms'],
  ])('spells %d ms as %s', (ms, text) => {
    expect(formatDuration(ms)).toBe(text)
  })

  test('loses nothing: parsing the text gives the same milliseconds', () => {
    fc.assert(
      fc.property(fc.nat({ max: 366 * 86_400_000 }), (ms) => {
        expect(parseDuration(formatDuration(ms))).toBe(ms)
      }),
    )
  })
})
