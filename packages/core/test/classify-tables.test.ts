import { describe, expect, test } from 'vitest'
import { type ClassifyOptions, classify } from '../src/classify/classify.ts'
import { RedriveError, type RedriveErrorCode } from '../src/errors.ts'

const options: ClassifyOptions = { rules: [], handler: 'orders', includeStack: false, now: 0 }

/** class, code and timedOut in one line, so that a table of them can be read. */
function verdict(error: unknown): string {
  const failure = classify(error, options)
  return `${failure.class} ${failure.code}${failure.timedOut ? ' timed out' : ''}`
}

function coded(code: unknown, fields: object = {}): Error {
  return Object.assign(new Error('it failed'), { code }, fields)
}

describe('codes of Node, undici and axios', () => {
  test.each([
    'ETIMEDOUT',
    'ESOCKETTIMEDOUT',
    'ETIMEOUT',
    'ECONNABORTED',
    'ERR_SOCKET_CONNECTION_TIMEOUT',
    'UND_ERR_CONNECT_TIMEOUT',
    'UND_ERR_HEADERS_TIMEOUT',
    'UND_ERR_BODY_TIMEOUT',
  ])('%s is transient and timed out', (code) => {
    expect(verdict(coded(code))).toBe(`transient ${code} timed out`)
  })

  test.each([
    'ECONNREFUSED',
    'ECONNRESET',
    'EPIPE',
    'ENOTCONN',
    'ERR_STREAM_PREMATURE_CLOSE',
    'ERR_HTTP2_STREAM_ERROR',
    'ERR_HTTP2_STREAM_CANCEL',
    'ERR_HTTP2_SESSION_ERROR',
    'ERR_HTTP2_GOAWAY_SESSION',
    'UND_ERR_SOCKET',
    'UND_ERR_RES_CONTENT_LENGTH_MISMATCH',
    'UND_ERR_INFO',
    'UND_ERR_BPL_MISSING_UPSTREAM',
    'ERR_NETWORK',
    'EHOSTUNREACH',
    'EHOSTDOWN',
    'ENETUNREACH',
    'ENETDOWN',
    'ENETRESET',
    'EAI_AGAIN',
    'ENOTFOUND',
    'ESERVFAIL',
    'EADDRINUSE',
    'EADDRNOTAVAIL',
    'EMFILE',
    'ENFILE',
    'ENOBUFS',
    'ENOMEM',
    'ENOSPC',
    'EDQUOT',
    'EAGAIN',
    'EBUSY',
    'EINTR',
    'EIO',
    'ABORT_ERR',
    'ERR_CANCELED',
    'UND_ERR_ABORT',
    'UND_ERR_ABORTED',
    'UND_ERR_CLOSED',
    'UND_ERR_DESTROYED',
  ])('%s is transient', (code) => {
    expect(verdict(coded(code))).toBe(`transient ${code}`)
  })

  test.each(['UND_ERR_RES_EXCEEDED_MAX_SIZE', 'UND_ERR_HEADERS_OVERFLOW'])(
    '%s is integration',
    (code) => {
      expect(verdict(coded(code))).toBe(`integration ${code}`)
    },
  )

  test.each(['ENOENT', 'EACCES', 'CERT_HAS_EXPIRED', 'UND_ERR_INVALID_ARG', 'constructor'])(
    '%s stays unknown, with its code',
    (code) => {
      expect(verdict(coded(code))).toBe(`unknown ${code}`)
    },
  )

  test('a code that is empty or not text is ignored, and a long one is cut', () => {
    expect(verdict(coded(''))).toBe('unknown undefined')
    expect(verdict(coded(42))).toBe('unknown undefined')
    expect(classify(coded('X'.repeat(101)), options).code).toBe('X'.repeat(100))
  })
})

describe('Redrive’s own errors', () => {
  test.each<[RedriveErrorCode, string]>([
    ['ATTEMPT_TIMEOUT', 'transient ATTEMPT_TIMEOUT timed out'],
    ['STOPPING', 'transient STOPPING'],
    ['CLOSED', 'transient CLOSED'],
    ['DLQ_CLOSED', 'transient DLQ_CLOSED'],
    ['DLQ_FULL', 'transient DLQ_FULL'],
    ['OUTCOME_UNKNOWN', 'transient OUTCOME_UNKNOWN'],
    ['UNROUTABLE', 'integration UNROUTABLE'],
    ['DELIVERY_LOST', 'transient DELIVERY_LOST'],
    ['PAYLOAD_INVALID', 'schema PAYLOAD_INVALID'],
    ['KEY_CONFLICT', 'integration KEY_CONFLICT'],
    ['POLICY_INVALID', 'unknown POLICY_INVALID'],
    ['CAPABILITY_MISSING', 'unknown CAPABILITY_MISSING'],
    ['EVENT_LOST', 'transient EVENT_LOST'],
    ['REPLAY_FAILED', 'transient REPLAY_FAILED'],
    ['UNREACHABLE', 'transient UNREACHABLE'],
    ['CONFLICT', 'business CONFLICT'],
    ['NEEDS_ANOTHER_PERSON', 'business NEEDS_ANOTHER_PERSON'],
    ['REFUSED', 'integration REFUSED'],
    ['TOPOLOGY_MISMATCH', 'unknown TOPOLOGY_MISMATCH'],
  ])('%s is %s', (code, expected) => {
    expect(verdict(new RedriveError(code, 'it failed'))).toBe(expected)
  })

  test('the same code without the brand is unknown', () => {
    expect(verdict(coded('PAYLOAD_INVALID'))).toBe('unknown PAYLOAD_INVALID')
  })

  test('a code of a newer version is unknown and shown', () => {
    const error = new RedriveError('FROM_THE_FUTURE' as RedriveErrorCode, 'it failed')
    expect(verdict(error)).toBe('unknown FROM_THE_FUTURE')
  })

  test('an error that lost its code is known by what is left of it', () => {
    const error = Object.defineProperty({ status: 503 }, Symbol.for('redrive.error'), {
      value: true,
    })
    expect(verdict(error)).toBe('transient HTTP 503')
  })
})

describe('Postgres', () => {
  /** The fields pg 8 sets on a DatabaseError. */
  const fields = {
    length: 212,
    name: 'error',
    severity: 'ERROR',
    detail: 'Key (id)=(7) already exists.',
    schema: 'public',
    table: 'orders',
    constraint: 'orders_pkey',
    file: 'nbtinsert.c',
    line: '666',
    routine: '_bt_check_unique',
  }

  test.each([
    ['08000', 'transient'],
    ['08006', 'transient'],
    ['08P01', 'transient'],
    ['40001', 'transient'],
    ['40P01', 'transient'],
    ['40002', 'business'],
    ['53100', 'transient'],
    ['53200', 'transient'],
    ['53300', 'transient'],
    ['58030', 'transient'],
    ['57P01', 'transient'],
    ['57P02', 'transient'],
    ['57P03', 'transient'],
    ['57P04', 'integration'],
    ['57P05', 'transient'],
    ['57000', 'unknown'],
    ['25P03', 'transient'],
    ['25006', 'transient'],
    ['25P02', 'unknown'],
    ['55P03', 'transient'],
    ['55006', 'transient'],
    ['55000', 'unknown'],
    ['22001', 'schema'],
    ['22P02', 'schema'],
    ['23502', 'business'],
    ['23503', 'business'],
    ['23505', 'business'],
    ['23514', 'business'],
    ['44000', 'business'],
    ['P0001', 'business'],
    ['P0002', 'unknown'],
    ['0A000', 'integration'],
    ['28P01', 'integration'],
    ['3D000', 'integration'],
    ['3F000', 'integration'],
    ['42P01', 'integration'],
    ['42501', 'integration'],
    ['54000', 'integration'],
    ['XX000', 'unknown'],
  ])('SQLSTATE %s is %s', (state, expected) => {
    expect(verdict(coded(state, fields))).toBe(`${expected} SQLSTATE ${state}`)
  })

  test.each(['57014', '25P04'])('SQLSTATE %s is a timeout', (state) => {
    expect(verdict(coded(state, fields))).toBe(`transient SQLSTATE ${state} timed out`)
  })

  test('severity alone or routine alone is enough', () => {
    expect(verdict(coded('23505', { severity: 'ERROR' }))).toBe('business SQLSTATE 23505')
    expect(verdict(coded('23505', { routine: 'x' }))).toBe('business SQLSTATE 23505')
  })

  test('a five-letter code without the mark is not a SQLSTATE', () => {
    expect(verdict(coded('23505'))).toBe('unknown 23505')
    expect(verdict(coded('EPIPE'))).toBe('transient EPIPE')
  })

  test.each(['2350', '235050', '23-05', '2350a', ' 23505'])('%j is not a SQLSTATE', (code) => {
    expect(verdict(coded(code, fields))).toBe(`unknown ${code}`)
  })
})

describe('gRPC', () => {
  const fields = { details: 'no', metadata: {} }

  test.each([
    [0, 'unknown GRPC OK'],
    [1, 'transient GRPC CANCELLED'],
    [2, 'unknown GRPC UNKNOWN'],
    [3, 'integration GRPC INVALID_ARGUMENT'],
    [4, 'transient GRPC DEADLINE_EXCEEDED timed out'],
    [5, 'integration GRPC NOT_FOUND'],
    [6, 'integration GRPC ALREADY_EXISTS'],
    [7, 'integration GRPC PERMISSION_DENIED'],
    [8, 'transient GRPC RESOURCE_EXHAUSTED'],
    [9, 'integration GRPC FAILED_PRECONDITION'],
    [10, 'transient GRPC ABORTED'],
    [11, 'integration GRPC OUT_OF_RANGE'],
    [12, 'integration GRPC UNIMPLEMENTED'],
    [13, 'transient GRPC INTERNAL'],
    [14, 'transient GRPC UNAVAILABLE'],
    [15, 'integration GRPC DATA_LOSS'],
    [16, 'integration GRPC UNAUTHENTICATED'],
    [17, 'unknown undefined'],
    [-1, 'unknown undefined'],
    [1.5, 'unknown undefined'],
  ])('status %s is %s', (code, expected) => {
    expect(verdict(coded(code, fields))).toBe(expected)
  })

  test('a number without details, without metadata or as text is not a gRPC status', () => {
    expect(verdict(coded(14, { metadata: {} }))).toBe('unknown undefined')
    expect(verdict(coded(14, { details: 'no' }))).toBe('unknown undefined')
    expect(verdict(coded('14', fields))).toBe('unknown 14')
  })
})

describe('the AWS SDK', () => {
  const $metadata = { httpStatusCode: 400, requestId: 'r', attempts: 3, totalRetryDelay: 90 }

  test.each([
    'BandwidthLimitExceeded',
    'EC2ThrottledException',
    'LimitExceededException',
    'PriorRequestNotComplete',
    'ProvisionedThroughputExceededException',
    'RequestLimitExceeded',
    'RequestThrottled',
    'RequestThrottledException',
    'SlowDown',
    'ThrottledException',
    'Throttling',
    'ThrottlingException',
    'TooManyRequestsException',
    'TransactionConflictException',
    'TransactionInProgressException',
  ])('%s is transient although its status is 400', (name) => {
    expect(verdict(Object.assign(new Error('no'), { name, $metadata }))).toBe(`transient ${name}`)
  })

  test.each(['RequestTimeout', 'RequestTimeoutException'])('%s is a timeout', (name) => {
    const error = Object.assign(new Error('no'), { name, $metadata })
    expect(verdict(error)).toBe(`transient ${name} timed out`)
  })

  test.each(['code', 'Code'])('the service’s code is found under %s too', (key) => {
    const error = Object.assign(new Error('no'), { [key]: 'SlowDown', $metadata })
    expect(verdict(error)).toBe('transient SlowDown')
  })

  test('what the service model marks as retryable is transient', () => {
    const error = Object.assign(new Error('no'), { name: 'Busy', $metadata, $retryable: {} })
    expect(verdict(error)).toBe('transient Busy')
  })

  test('any other refusal is classified by its status', () => {
    const error = Object.assign(new Error('no'), { name: 'AccessDenied', $metadata })
    expect(verdict(error)).toBe('integration HTTP 400')
  })

  test('the name alone, without the SDK’s metadata, is unknown', () => {
    const error = Object.assign(new Error('no'), { name: 'ThrottlingException', $retryable: {} })
    expect(verdict(error)).toBe('unknown undefined')
  })
})

describe('HTTP', () => {
  test.each([
    [99, 'unknown undefined'],
    [200, 'unknown undefined'],
    [399, 'unknown undefined'],
    [400, 'integration HTTP 400'],
    [401, 'integration HTTP 401'],
    [404, 'integration HTTP 404'],
    [407, 'integration HTTP 407'],
    [408, 'transient HTTP 408 timed out'],
    [409, 'integration HTTP 409'],
    [424, 'integration HTTP 424'],
    [425, 'transient HTTP 425'],
    [426, 'integration HTTP 426'],
    [428, 'integration HTTP 428'],
    [429, 'transient HTTP 429'],
    [430, 'integration HTTP 430'],
    [499, 'integration HTTP 499'],
    [500, 'transient HTTP 500'],
    [503, 'transient HTTP 503'],
    [504, 'transient HTTP 504 timed out'],
    [505, 'transient HTTP 505'],
    [599, 'transient HTTP 599'],
    [600, 'unknown undefined'],
    [503.5, 'unknown undefined'],
    ['503', 'transient HTTP 503'],
    ['0503', 'unknown undefined'],
    ['5o3', 'unknown undefined'],
    ['failed', 'unknown undefined'],
    [true, 'unknown undefined'],
  ])('status %j is %s', (status, expected) => {
    expect(verdict({ status })).toBe(expected)
  })

  test.each([
    ['status', { status: 503 }],
    ['statusCode', { statusCode: 503 }],
    ['response.status', { response: { status: 503 } }],
    ['response.statusCode', { response: { statusCode: 503 } }],
    ['$metadata.httpStatusCode', { $metadata: { httpStatusCode: 503 } }],
  ])('the status is found under %s', (_, error) => {
    expect(verdict(error)).toBe('transient HTTP 503')
  })

  test('a text under one name does not hide the number under the next', () => {
    expect(verdict({ status: 'error', response: { status: 422 } })).toBe('integration HTTP 422')
  })

  test('a status wins over the client’s own code', () => {
    const error = coded('ERR_BAD_RESPONSE', { response: { status: 502 } })
    expect(verdict(error)).toBe('transient HTTP 502')
    expect(verdict(coded('ECONNRESET', { status: 404 }))).toBe('integration HTTP 404')
  })

  test('a thrown Response is read like any other error', () => {
    const response = new Response('busy', { status: 503, headers: { 'retry-after': '7' } })
    expect(classify(response, options)).toMatchObject({
      class: 'transient',
      code: 'HTTP 503',
      type: 'Response',
      retryAfterMs: 7000,
    })
  })
})

describe('aborts and timeouts', () => {
  test.each([
    ['AbortError', 'transient ABORT_ERR'],
    ['TimeoutError', 'transient TIMEOUT_ERR timed out'],
    ['DataCloneError', 'unknown undefined'],
  ])('a DOMException named %s is %s', (name, expected) => {
    expect(verdict(new DOMException('it failed', name))).toBe(expected)
  })

  test('an imitation keeps its own code', () => {
    const error = coded('POOL_TIMEOUT', { name: 'TimeoutError' })
    expect(verdict(error)).toBe('transient POOL_TIMEOUT timed out')
  })
})

describe('payloads that cannot be read', () => {
  test.each([
    [[{ message: 'Required', path: ['email'] }]],
    [[{ message: 'Required', path: [{ key: 'email' }] }]],
    [[{ message: 'Required' }]],
    [[{ message: 'Required', path: undefined }]],
  ])('issues %j are schema', (issues) => {
    expect(verdict(Object.assign(new Error('invalid'), { issues }))).toBe('schema undefined')
  })

  test.each([
    [[]],
    ['Required'],
    [[{ path: ['email'] }]],
    [[{ message: 'Required', path: 'email' }]],
    [['Required']],
    [{ 0: { message: 'Required' }, length: 1 }],
  ])('%j are not issues', (issues) => {
    expect(verdict(Object.assign(new Error('invalid'), { issues }))).toBe('unknown undefined')
  })

  test('issues keep the library’s code', () => {
    expect(verdict(coded('VALIDATION', { issues: [{ message: 'no' }] }))).toBe('schema VALIDATION')
  })

  test.each([
    '',
    '{a',
    '[1,',
    '"x',
    '{"a":1,}',
    'undefined',
    '1 2',
    '{"a" 1}',
    '{"a":1 "b"}',
    '"\\x"',
    '"\\u12"',
    '"\n"',
    '-',
    '1.',
    '1e',
    'tru',
    '<html>',
    '[1 2]',
    `{"text": "${'long '.repeat(50)}" oops}`,
  ])('JSON.parse(%j) fails as schema', (text) => {
    expect(verdict(thrownBy(() => JSON.parse(text) as unknown))).toBe('schema INVALID_JSON')
  })

  test('a SyntaxError of code is unrelated to a payload', () => {
    const pattern = '('
    expect(verdict(thrownBy(() => new RegExp(pattern)))).toBe('unknown undefined')
  })

  test.each([
    'Unexpected end of JSON input, said the parser',
    'the Unexpected end of JSON input',
    'found x in JSON at position one',
    'found x after JSON at position one',
    'it is not valid JSON5',
  ])('a SyntaxError with the message %j did not come from JSON.parse', (message) => {
    expect(verdict(new SyntaxError(message))).toBe('unknown undefined')
  })

  test('the message of JSON.parse in another error is unknown', () => {
    expect(verdict(new Error('Unexpected end of JSON input'))).toBe('unknown undefined')
  })

  test('a SyntaxError without message or stack is still classified', () => {
    const bare = new SyntaxError('Unexpected end of JSON input')
    expect(verdict(Object.defineProperty(bare, 'stack', { value: undefined }))).toBe(
      'schema INVALID_JSON',
    )
    expect(verdict(Object.defineProperty(bare, 'message', { value: undefined }))).toBe(
      'unknown undefined',
    )
  })

  test.each([
    ['    at parseJSONFromBytes (node:internal/deps/undici/undici:4394:19)', 'unknown'],
    ['    at node:internal/deps/undici/undici:4394:19', 'unknown'],
    ['    at parse (/app/node_modules/undici/lib/web/fetch/body.js:1:2)', 'unknown'],
    ['    at parse (C:\\app\\node_modules\\undici\\lib\\body.js:1:2)', 'unknown'],
    ['    at parse (/app/src/undici/body.js:1:2)', 'schema'],
    ['    at parseJson (file:///app/node_modules/got/dist/parse.js:1:2)', 'unknown'],
    ['    at parse (C:\\app\\node_modules\\got\\parse.js:1:2)', 'unknown'],
    ['    at charge (/app/src/charge.js:1:2)\n    at run (/app/node_modules/x/y.js:1:2)', 'schema'],
  ])('parsed at "%s" is %s: a response is a dependency’s answer', (frame, expected) => {
    // The second one: a client that keeps the function in a variable.
    for (const name of ['JSON.parse', 'parse', 'Object.parse']) {
      const error = new SyntaxError('Unexpected end of JSON input')
      error.stack = `SyntaxError: ${error.message}\n    at ${name} (<anonymous>)\n${frame}`
      expect(verdict(error)).toBe(`${expected} INVALID_JSON`)
    }
  })
})

function thrownBy(run: () => unknown): unknown {
  try {
    run()
  } catch (error) {
    return error
  }
  throw new Error('nothing was thrown')
}

describe('errors without a code', () => {
  test.each([
    ['Connection terminated', false],
    ['Connection terminated unexpectedly', false],
    ['Client has encountered a connection error and is not queryable', false],
    ['timeout exceeded when trying to connect', false],
    ['Connection is closed.', false],
    ['Connection terminated due to connection timeout', true],
    ['Query read timeout', true],
    ['timeout expired', true],
  ])('%s is transient', (message, timedOut) => {
    expect(classify(new Error(message), options)).toMatchObject({ class: 'transient', timedOut })
  })

  test.each([
    ['part of a sentence', new Error('Order 7: Connection terminated unexpectedly')],
    ['not an error', { message: 'Connection terminated unexpectedly' }],
  ])('%s does not match', (_, error) => {
    expect(classify(error, options).class).toBe('unknown')
  })
})
