import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type ClassifyOptions, classify } from '../src/classify/classify.ts'
import { FAILURE_CLASSES } from '../src/failure.ts'

const options: ClassifyOptions = { rules: [], handler: 'orders', includeStack: true, now: 0 }

const FIELDS = [
  'name',
  'message',
  'stack',
  'code',
  'status',
  'statusCode',
  'response',
  'headers',
  'cause',
  'errors',
  'issues',
  'severity',
  'details',
  'metadata',
  '$metadata',
  '$retryable',
  'retryAfterMs',
  'constructor',
] as const

/** Objects and errors with any value under the names that Redrive reads. */
const anyError = fc
  .tuple(
    fc.boolean(),
    fc.dictionary(
      fc.constantFrom(...FIELDS),
      fc.anything({ withBigInt: true, withNullPrototype: true, withSparseArray: true }),
    ),
  )
  .map(([real, fields]) => {
    const target: object = real ? new Error('no') : {}
    for (const [key, value] of Object.entries(fields)) {
      Object.defineProperty(target, key, { value, configurable: true })
    }
    return target
  })

const refuse = (): never => {
  throw new Error('trap')
}

/** Every trap throws. */
const HOSTILE = new Proxy(
  {},
  Object.fromEntries(
    ['get', 'has', 'ownKeys', 'getPrototypeOf', 'getOwnPropertyDescriptor'].map((trap) => [
      trap,
      refuse,
    ]),
  ),
)

function revoked(target: object): object {
  const { proxy, revoke } = Proxy.revocable(target, {})
  revoke()
  return proxy
}

function expectFailure(error: unknown): void {
  const failure = classify(error, options)
  expect(FAILURE_CLASSES).toContain(failure.class)
  expect(failure.signature).toMatch(/^3-[0-9a-f]{16}$/)
  expect(failure.message.length).toBeLessThanOrEqual(500)
  expect(failure.type.length).toBeLessThanOrEqual(100)
  expect(failure.code?.length ?? 0).toBeLessThanOrEqual(120)
  expect(failure.stack?.length ?? 0).toBeLessThanOrEqual(2048)
  expect(classify(error, options)).toEqual(failure)
}

describe('classify returns a bounded and stable result for every thrown value', () => {
  test('anything', () => {
    fc.assert(fc.property(fc.anything({ withBigInt: true }), expectFailure))
  })

  test('errors with any value under the names that Redrive reads', () => {
    fc.assert(fc.property(anyError, expectFailure), { numRuns: 200 })
  })

  test('errors wrapped in errors', () => {
    const chain = fc
      .array(anyError, { minLength: 1, maxLength: 20 })
      .map((errors) =>
        errors.reduce((cause, error) =>
          Object.defineProperty(error, 'cause', { value: cause, configurable: true }),
        ),
      )
    fc.assert(fc.property(chain, expectFailure))
  })

  test.each([
    ['a proxy whose every trap throws', HOSTILE],
    ['a revoked proxy', revoked({})],
    ['a revoked function', revoked(() => 1)],
    ['a revoked array of errors', { errors: revoked([]), issues: revoked([]) }],
    ['hostile members', new AggregateError([HOSTILE, revoked({})], 'no')],
    ['a hostile cause', new Error('no', { cause: HOSTILE })],
    ['hostile issues', { issues: [HOSTILE, { message: 'no', path: HOSTILE }] }],
    ['a revoked path', { issues: [{ message: 'no', path: revoked([]) }] }],
    ['hostile headers', { status: 503, response: { headers: HOSTILE }, headers: revoked({}) }],
    ['a frozen error', Object.freeze(new Error('no'))],
    ['an object without a prototype', Object.create(null)],
  ])('%s', (_, error) => {
    expectFailure(error)
  })

  test('an object with throwing getters', () => {
    const error = {}
    for (const key of FIELDS) Object.defineProperty(error, key, { get: refuse, enumerable: true })
    expectFailure(error)
    expect(classify(error, options)).toMatchObject({ class: 'unknown', type: 'object' })
  })

  test('a proxy that returns itself for every property', () => {
    const mirror: object = new Proxy(() => 1, { get: () => mirror })
    expectFailure(mirror)
  })

  test('a proxy that has a new cause every time', () => {
    const endless = (): object =>
      new Proxy({}, { get: (_, key) => (key === 'cause' ? endless() : undefined) })
    const failure = classify(endless(), options)
    expect(failure.class).toBe('unknown')
  })

  test('an aggregate that contains itself many times', () => {
    const many = new AggregateError([], 'no')
    many.errors = Array.from({ length: 10_000 }, () => many)
    expectFailure(many)
  })

  test('an unreadable property does not hide readable ones', () => {
    const error = Object.defineProperty({ status: 503 }, 'code', { get: refuse })
    expect(classify(error, options)).toMatchObject({ class: 'transient', code: 'HTTP 503' })
    const hostile = new AggregateError([HOSTILE, Object.assign(new Error('no'), { status: 503 })])
    expect(classify(hostile, options).class).toBe('transient')
  })
})
