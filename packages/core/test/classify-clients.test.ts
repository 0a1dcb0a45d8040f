import { describe, expect, test } from 'vitest'
import { classify } from '../src/classify/classify.ts'
import {
  AMQP_CODES,
  CLIENT_CODES,
  KAFKA_TYPES,
  MONGO_CODES,
  NAMES,
  PRISMA_KINDS,
  REDIS_REPLIES,
  REDIS_WORDS,
} from '../src/classify/clients.ts'
import { MESSAGE_STARTS, MESSAGES } from '../src/classify/codes.ts'

/** class, code and timedOut in one line, so that a table of them can be read. */
function verdict(error: unknown): string {
  const options = { rules: [], handler: 'orders', includeStack: false, now: 0 }
  const failure = classify(error, options)
  return `${failure.class} ${failure.code}${failure.timedOut ? ' timed out' : ''}`
}

const failed = (fields: object, message = 'it failed') => Object.assign(new Error(message), fields)

/** The rows of a table, in one line per class. A removed or moved row changes it. */
function rowsOf(table: ReadonlyMap<string, string>): Readonly<Record<string, string>> {
  const groups = Object.groupBy(table, ([, ruling]) => ruling)
  return Object.fromEntries(
    Object.entries(groups).map(([ruling, rows = []]) => [
      ruling,
      rows
        .map(([code]) => code)
        .sort()
        .join(' '),
    ]),
  )
}

const named = (table: ReadonlyMap<number, readonly [string, string]>) =>
  new Map([...table].map(([code, [name, ruling]]) => [`${code}:${name}`, ruling]))

describe('the tables', () => {
  test.each<[string, ReadonlyMap<string, string>]>([
    ['codes of MySQL and Prisma', CLIENT_CODES],
    ['kinds of Prisma', PRISMA_KINDS],
    ['codes of MongoDB', named(MONGO_CODES)],
    ['codes of AMQP', named(AMQP_CODES)],
    ['types of Kafka', KAFKA_TYPES],
    ['words of Redis', REDIS_WORDS],
    ['names', NAMES],
    ['messages', MESSAGES],
  ])('have these %s', (_, table) => {
    expect(rowsOf(table)).toMatchSnapshot()
  })
})

describe('MySQL and Prisma', () => {
  test.each([
    [
      { code: 'ER_LOCK_WAIT_TIMEOUT', sqlState: 'HY000', sqlMessage: 'no' },
      'transient ER_LOCK_WAIT_TIMEOUT',
    ],
    [{ code: 'ER_DUP_ENTRY', sqlState: '23000', sqlMessage: 'no' }, 'business ER_DUP_ENTRY'],
    [{ sqlState: '45000', sqlMessage: 'no' }, 'business SQLSTATE 45000'],
    [{ code: 'ER_NEW', sqlState: 'HY000', sqlMessage: 'no' }, 'unknown ER_NEW'],
    [{ code: 'ER_DUP_ENTRY', sqlState: '23000' }, 'unknown ER_DUP_ENTRY'],
    [{ originalCode: '40P01', kind: 'TransactionWriteConflict' }, 'transient SQLSTATE 40P01'],
    [{ originalCode: '40P01' }, 'unknown undefined'],
    [{ errorCode: 'P1001' }, 'transient P1001'],
    [{ code: 'P2024' }, 'transient P2024'],
    [{ code: 'P2025' }, 'unknown P2025'],
  ])('%j is %s', (fields, expected) => {
    expect(verdict(failed(fields))).toBe(expected)
  })

  test('an adapter’s error is known by the kind of its cause', () => {
    const cause = { kind: 'DatabaseNotReachable' }
    const meta = { driverAdapterError: failed({ name: 'DriverAdapterError', cause }) }
    expect(verdict(failed({ code: 'P2010', meta }))).toBe('transient DatabaseNotReachable')
    expect(verdict(failed({ cause }))).toBe('unknown undefined')
  })
})

describe('MongoDB', () => {
  test.each([
    [{ name: 'MongoServerError', code: 11_000 }, 'business MONGO DuplicateKey'],
    [{ name: 'MongoServerError', code: 50 }, 'transient MONGO MaxTimeMSExpired timed out'],
    [
      { name: 'MongoServerError', code: 1, errorLabels: ['Any', 'RetryableWriteError'] },
      'transient MONGO RetryableWriteError',
    ],
    [
      { name: 'MongoServerError', errorLabels: ['TransientTransactionError'] },
      'transient MONGO TransientTransactionError',
    ],
    [{ name: 'MongoServerError', code: 1, errorLabels: ['Any'] }, 'unknown undefined'],
    [{ name: 'OrderError', code: 11_000 }, 'unknown undefined'],
  ])('%j is %s', (fields, expected) => {
    expect(verdict(failed(fields))).toBe(expected)
  })
})

describe('brokers', () => {
  test.each([
    [{ code: 320, classId: 0 }, 'transient AMQP CONNECTION_FORCED'],
    [{ code: 999, classId: 0 }, 'unknown undefined'],
    [{ code: 320 }, 'unknown undefined'],
    [
      { name: 'KafkaJSProtocolError', type: 'MESSAGE_TOO_LARGE', retriable: false },
      'integration KAFKA MESSAGE_TOO_LARGE',
    ],
    [
      { name: 'KafkaJSProtocolError', type: 'LEADER_NOT_AVAILABLE', retriable: true },
      'transient KAFKA LEADER_NOT_AVAILABLE',
    ],
    [{ name: 'KafkaJSProtocolError', type: 'NEW', retriable: false }, 'unknown undefined'],
    [{ name: 'OrderError', type: 'MESSAGE_TOO_LARGE', retriable: true }, 'unknown undefined'],
  ])('%j is %s', (fields, expected) => {
    expect(verdict(failed(fields))).toBe(expected)
  })

  test.each([...REDIS_REPLIES])('a %s is known by its first word', (name) => {
    expect(verdict(failed({ name }, 'OOM command not allowed'))).toBe('transient REDIS OOM')
    expect(verdict(failed({ name }, 'OOM'))).toBe('unknown undefined')
    expect(verdict(failed({ name }, 'ERR no'))).toBe('unknown undefined')
    expect(verdict(failed({ name: 'OrderError' }, 'OOM no'))).toBe('unknown undefined')
  })

  test('a reply with the word of a code elsewhere is not known', () => {
    expect(verdict(failed({ name: 'ReplyError' }, 'the server said OOM now'))).toBe(
      'unknown undefined',
    )
  })

  test('the names of replies are those of ioredis and node-redis', () => {
    expect([...REDIS_REPLIES]).toEqual(['ReplyError', 'SimpleError', 'BlobError', 'ErrorReply'])
  })
})

describe('messages', () => {
  test('a start matches with any details', () => {
    const [[start] = ['none']] = MESSAGE_STARTS
    expect(verdict(failed({}, `${start} with message "no"`))).toBe('integration undefined')
    expect(verdict(failed({}, `No. ${start}`))).toBe('unknown undefined')
  })
})

describe('names', () => {
  test('a name decides when no code does, and is shown as the code', () => {
    expect(verdict(failed({ name: 'KnexTimeoutError' }))).toBe('transient KnexTimeoutError')
    expect(verdict(failed({ name: 'MongoNetworkTimeoutError', code: 'X' }))).toBe(
      'transient X timed out',
    )
  })

  test('the code of a cause is stronger than the name of its wrapper', () => {
    const cause = failed({ code: 'SQLITE', name: 'error', severity: 'FATAL' })
    const denied = failed({ code: '28P01', severity: 'FATAL' })
    expect(verdict(failed({ name: 'SequelizeConnectionError', parent: denied }))).toBe(
      'integration SQLSTATE 28P01',
    )
    expect(verdict(failed({ name: 'SequelizeConnectionError', parent: cause }))).toBe(
      'transient SequelizeConnectionError',
    )
  })

  test('a name marks a timeout although a cause decides the class', () => {
    const cause = new DOMException('aborted', 'AbortError')
    const error = failed({ name: 'APIConnectionTimeoutError', cause })
    expect(verdict(error)).toBe('transient ABORT_ERR timed out')
  })
})

describe('wrapped errors', () => {
  const refused = failed({ code: 'ECONNREFUSED' })

  test.each([
    [{ parent: refused }],
    [{ driverError: refused }],
    [{ detail: refused }],
    [{ lastNodeError: refused }],
    [{ originalError: refused }],
    [{ meta: { driverAdapterError: refused } }],
  ])('%o is known by the error in it', (fields) => {
    expect(verdict(failed(fields))).toBe('transient ECONNREFUSED')
  })

  test('a text or a plain object in these places is no error', () => {
    expect(verdict(failed({ detail: 'ECONNREFUSED' }))).toBe('unknown undefined')
    expect(verdict(failed({ parent: { code: 'ECONNREFUSED' } }))).toBe('unknown undefined')
  })
})

describe('DynamoDB', () => {
  const cancelled = (...codes: readonly string[]) =>
    failed({
      name: 'TransactionCanceledException',
      $metadata: { httpStatusCode: 400 },
      CancellationReasons: codes.map((Code) => ({ Code })),
    })

  test.each(['TransactionConflict', 'ThrottlingError', 'ProvisionedThroughputExceeded'])(
    'a transaction that %s cancels is transient',
    (code) => expect(verdict(cancelled('None', code))).toBe(`transient ${code}`),
  )

  test('a transaction that a condition cancels is refused', () => {
    expect(verdict(cancelled('None', 'ConditionalCheckFailed'))).toBe('integration HTTP 400')
  })
})

describe('retry-after-ms', () => {
  const waitOf = (headers: unknown) =>
    classify({ status: 429, headers }, { rules: [], handler: 'h', includeStack: false, now: 0 })
      .retryAfterMs

  test('is read in milliseconds, before Retry-After', () => {
    expect(waitOf({ 'retry-after-ms': '1500', 'retry-after': '2' })).toBe(1500)
    expect(waitOf({ 'Retry-After-Ms': 1500 })).toBe(1500)
    expect(waitOf(new Headers({ 'retry-after-ms': '1500' }))).toBe(1500)
  })

  test('is ignored when it is not a number', () => {
    expect(waitOf({ 'retry-after-ms': 'soon', 'retry-after': '2' })).toBe(2000)
  })
})
