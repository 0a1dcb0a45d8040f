import { describe, expect, test } from 'vitest'
import { type ClassifyOptions, classify } from '../src/classify/classify.ts'
import { PUSHBACK_MAX_MS } from '../src/defaults.ts'

const now = Date.UTC(2026, 0, 31, 12, 0, 0)
const options: ClassifyOptions = { rules: [], handler: 'orders', includeStack: false, now }

function waitOf(error: unknown): number | undefined {
  return classify(error, options).retryAfterMs
}

function header(value: unknown): unknown {
  return { response: { status: 429, headers: { 'retry-after': value } } }
}

describe('a rejected request whose service requests a wait', () => {
  const answered = (status: number, wait?: string) =>
    classify({ response: { status, headers: wait ? { 'retry-after': wait } : {} } }, options)

  test.each([400, 403, 409, 413, 423, 499])('is transient: status %i', (status) => {
    expect(answered(status, '60')).toMatchObject({ class: 'transient', code: `HTTP ${status}` })
    expect(answered(status, '0')).toMatchObject({ class: 'transient' })
    for (const invalid of [undefined, '-1', 'soon', 'soon GMT'])
      expect(answered(status, invalid)).toMatchObject({ class: 'integration' })
  })

  test('is transient at every date that it names, because clocks differ', () => {
    const at = (ms: number) => new Date(now + ms).toUTCString()
    expect(answered(403, at(1_000))).toMatchObject({ class: 'transient' })
    expect(answered(403, at(0))).toMatchObject({ class: 'transient' })
    expect(answered(403, at(-90_000))).toMatchObject({ class: 'transient' })
  })
})

describe('where the wait is found', () => {
  test.each([
    ['retryAfterMs', { retryAfterMs: 1500 }, 1500],
    ['a plain object of headers', { response: { headers: { 'retry-after': '2' } } }, 2000],
    ['headers spelled in capitals', { response: { headers: { 'Retry-After': '2' } } }, 2000],
    ['a list of values', { response: { headers: { 'retry-after': ['3', '4'] } } }, 3000],
    ['Headers', { response: { headers: new Headers({ 'Retry-After': '2' }) } }, 2000],
    ['the error’s own headers', { headers: { 'retry-after': '4' } }, 4000],
    ['the AWS SDK’s response', { $response: { headers: { 'retry-after': '5' } } }, 5000],
    ['a Map', { headers: new Map([['retry-after', '6']]) }, 6000],
  ])('%s', (_, error, expected) => {
    expect(waitOf(error)).toBe(expected)
  })

  test('the retryAfterMs of the error wins over a header', () => {
    expect(waitOf({ retryAfterMs: 10, headers: { 'retry-after': '4' } })).toBe(10)
  })

  test('the response’s header wins over the error’s', () => {
    const headers = { 'retry-after': '4' }
    expect(waitOf({ headers, response: { headers: { 'retry-after': '9' } } })).toBe(9000)
  })

  test('the cause is read when the thrown error has no wait', () => {
    expect(waitOf(new Error('charge failed', { cause: { retryAfterMs: 250 } }))).toBe(250)
  })

  test('the thrown error is read before its cause', () => {
    const error = Object.assign(new Error('charge failed', { cause: { retryAfterMs: 250 } }), {
      retryAfterMs: 100,
    })
    expect(waitOf(error)).toBe(100)
  })

  test('headers that throw count as absent', () => {
    const get = (): never => {
      throw new Error('closed')
    }
    expect(waitOf({ headers: { get } })).toBeUndefined()
  })

  test('get is called on the headers it belongs to', () => {
    class Bag {
      readonly values = ['8']
      get(name: string): string | undefined {
        return name === 'retry-after' ? this.values[0] : undefined
      }
    }
    expect(waitOf({ headers: new Bag() })).toBe(8000)
  })
})

describe('how the wait is parsed', () => {
  test.each([
    ['0', 0],
    ['120', 120_000],
    [' 120 ', 120_000],
    ['1.5', 1500],
    ['1.25', 1250],
    [30, 30_000],
    ['Sat, 31 Jan 2026 12:00:30 GMT', 30_000],
    ['Sat, 31 Jan 2026 11:59:59 GMT', 0],
    ['  Sat, 31 Jan 2026 12:00:30 GMT ', 30_000],
    ['Sat, 31 Jan 2026 12:00:30 GMT'.padStart(64), 30_000],
    ['Saturday, 31-Jan-26 12:01:00 GMT', 60_000],
    ['86400', PUSHBACK_MAX_MS],
    ['86401', PUSHBACK_MAX_MS],
    ['1769860800', PUSHBACK_MAX_MS],
    ['Sat, 31 Jan 2099 12:00:30 GMT', PUSHBACK_MAX_MS],
  ])('Retry-After: %j is %s ms', (value, expected) => {
    expect(waitOf(header(value))).toBe(expected)
  })

  test.each([
    ['-1'],
    [-1],
    ['soon'],
    ['soon GMT'],
    ['Sat, 31 Jan 2026 12:00:30 GMT'.padStart(65)],
    ['2026-01-31T12:00:30Z'],
    ['Sat Jan 31 12:00:30 2026'],
    ['1e3'],
    ['x120'],
    ['120x'],
    ['1.'],
    [''],
    [null],
    [Number.NaN],
    [`${' '.repeat(64)}1`],
    [{}],
  ])('Retry-After: %j is no wait', (value) => {
    expect(waitOf(header(value))).toBeUndefined()
  })

  test('a header of 64 characters is still read', () => {
    expect(waitOf(header(`${' '.repeat(63)}1`))).toBe(1000)
  })

  test.each([[-1], [Number.NaN], ['100'], [undefined]])('retryAfterMs %s is no wait', (value) => {
    expect(waitOf({ retryAfterMs: value })).toBeUndefined()
  })

  test('retryAfterMs 0 means immediately, and an infinite one is limited to a day', () => {
    expect(waitOf({ retryAfterMs: 0 })).toBe(0)
    expect(waitOf({ retryAfterMs: Number.POSITIVE_INFINITY })).toBe(86_400_000)
  })
})
