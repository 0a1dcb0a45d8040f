import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type ClassifyOptions, classify } from '../src/classify/classify.ts'
import { namesOf } from '../src/classify/names.ts'

const options: ClassifyOptions = { rules: [], handler: 'orders', includeStack: false, now: 0 }

/** The same value, but its names cannot be listed: classification then tries each name it knows. */
function unlisted(error: object): object {
  const ownKeys = (): never => {
    throw new Error('not listed')
  }
  return new Proxy(error, { ownKeys, get: (target, key): unknown => Reflect.get(target, key) })
}

describe('the names of a thrown value', () => {
  test('include those of its classes', () => {
    class Upper extends Error {
      get code(): string {
        return 'ECONNREFUSED'
      }
    }
    class Lower extends Upper {}
    expect(namesOf(new Lower('no')).has('code')).toBe(true)
    expect(classify(new Lower('no'), options)).toMatchObject({
      class: 'transient',
      code: 'ECONNREFUSED',
    })
  })

  test('include names that are not enumerable', () => {
    const error = Object.defineProperty(new Error('no'), 'status', { value: 503 })
    expect(classify(error, options)).toMatchObject({ class: 'transient', code: 'HTTP 503' })
  })

  test.each([
    ['a buffer', Buffer.alloc(2)],
    ['an array', [1, 2]],
  ])('are not listed for %s, which may have millions', (_, value) => {
    expect(namesOf(value).has('status')).toBe(true)
  })

  test('are only existing ones', () => {
    const names = namesOf(Object.assign(new Error('no'), { code: 'E' }))
    expect(['code', 'message', 'name', 'stack'].filter((name) => names.has(name))).toHaveLength(4)
    expect(names.has('status')).toBe(false)
    expect(names.has('cause')).toBe(false)
  })

  test('are all names when they cannot be listed', () => {
    for (const value of ['text', null, unlisted(new Error('no'))]) {
      expect(namesOf(value).has('any')).toBe(true)
    }
  })
})

/** Each property that a table or a detector reads, with values that it recognises. */
const PROPERTIES: Readonly<Record<string, readonly unknown[]>> = {
  name: ['AbortError', 'MongoError', 'KafkaJSProtocolError', 'ReplyError', 'DriverAdapterError'],
  message: ['OOM no room', 'Unexpected end of JSON input', 'Connection terminated', ''],
  code: ['ECONNREFUSED', 'ER_LOCK_WAIT_TIMEOUT', '23505', '40001', 14, 11_000, 320],
  errorCode: ['P1001', 'ECONNRESET'],
  originalCode: ['23505'],
  kind: ['UniqueConstraintViolation'],
  sqlState: ['40001'],
  sqlMessage: ['deadlock'],
  severity: ['ERROR'],
  routine: ['exec'],
  details: ['', { code: 'x' }],
  metadata: [{}],
  $metadata: [{ httpStatusCode: 429 }],
  Code: ['ThrottlingException'],
  $retryable: [{}],
  CancellationReasons: [[{ Code: 'ThrottlingException' }]],
  status: [503, '404'],
  statusCode: [429],
  response: [{ status: 500, headers: { 'retry-after': '2' }, data: { code: 'no_stock' } }],
  headers: [{ 'retry-after': '3' }],
  $response: [{ headers: { 'retry-after': '4' } }],
  retryAfterMs: [5_000],
  classId: [60],
  type: ['REQUEST_TIMED_OUT', 'card_error'],
  retriable: [true],
  errorLabels: [['RetryableWriteError']],
  issues: [[{ message: 'Required', path: ['total'] }]],
  reason: ['insufficient_funds'],
  constraint: ['orders_total_check'],
  param: ['total'],
  category: ['E_CARD'],
  responseBody: ['{"code":"no_stock"}'],
  body: [{ error: { code: 'no_stock' } }],
  data: [{ reason: 'closed' }],
  raw: [{ decline_code: 'stolen_card' }],
  cause: [Object.assign(new Error('socket'), { code: 'ECONNRESET' }), { kind: 'SocketTimeout' }],
  errors: [[Object.assign(new Error('socket'), { code: 'ETIMEDOUT' })]],
  parent: [Object.assign(new Error('driver'), { code: 'ECONNREFUSED' })],
  driverError: [Object.assign(new Error('driver'), { code: 'EPIPE' })],
  detail: [Object.assign(new Error('stripe'), { code: 'ECONNRESET' })],
  lastNodeError: [Object.assign(new Error('node'), { code: 'ECONNREFUSED' })],
  originalError: [Object.assign(new Error('socket'), { code: 'ECONNRESET' })],
  meta: [{ driverAdapterError: Object.assign(new Error('x'), { code: 'ECONNREFUSED' }) }],
}

const FIELDS = Object.entries(PROPERTIES).flatMap(([name, values]) =>
  values.map((value) => [name, value] as const),
)

function anError(...fields: (readonly [name: string, value: unknown])[]): Error {
  const error = new Error('no')
  for (const [name, value] of fields) {
    Object.defineProperty(error, name, { value, configurable: true })
  }
  return error
}

function expectEqual(error: Error, fields: unknown): void {
  const whenEachIsTried = classify(unlisted(error), options)
  expect({ fields, failure: classify(error, options) }).toEqual({
    fields,
    failure: whenEachIsTried,
  })
}

describe('a value is classified in the same way when only existing names are tried', () => {
  test('with any two known properties', () => {
    FIELDS.forEach((one, at) => {
      for (const other of FIELDS.slice(at)) expectEqual(anError(one, other), [one, other])
    })
  })

  test('with any known properties', () => {
    const fields = fc.subarray(FIELDS, { maxLength: 8 })
    fc.assert(
      fc.property(fields, (some) => expectEqual(anError(...some), some)),
      { numRuns: 200 },
    )
  })
})
