import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import { type AddressInfo, connect, createServer as createTcpServer } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { MAX_LINKS } from '../src/classify/causes.ts'
import { type ClassifyOptions, classify } from '../src/classify/classify.ts'
import { business, type Rule } from '../src/classify/rules.ts'
import { chainOf } from '../src/classify/text.ts'
import { RedriveError } from '../src/errors.ts'
import type { Failure } from '../src/failure.ts'

const options: ClassifyOptions = { rules: [], handler: 'orders', includeStack: true, now: 0 }

function failureOf(error: unknown): Failure {
  return classify(error, options)
}

function withoutKeys(): object {
  const ownKeys = () => {
    throw new Error('no')
  }
  return new Proxy({}, { ownKeys })
}

describe('real errors of Node', () => {
  test('a refused connection', async () => {
    const socket = connect(await closedPort(), '127.0.0.1')
    const [error] = (await once(socket, 'error')) as [Error]
    expect(failureOf(error)).toMatchObject({
      class: 'transient',
      type: 'Error',
      code: 'ECONNREFUSED',
      timedOut: false,
    })
  })

  test('a fetch whose connection is refused is classified by its cause', async () => {
    const port = await closedPort()
    const failure = failureOf(await rejection(fetch(`http://127.0.0.1:${port}/`)))
    expect(failure).toMatchObject({
      class: 'transient',
      type: 'TypeError',
      code: 'ECONNREFUSED',
      message: `fetch failed; caused by Error: connect ECONNREFUSED 127.0.0.1:${port}`,
    })
  })

  test('a fetch that runs into AbortSignal.timeout', async () => {
    const failure = await serving(noAnswer, async (url) =>
      failureOf(await rejection(fetch(url, { signal: AbortSignal.timeout(20) }))),
    )
    expect(failure).toMatchObject({
      class: 'transient',
      type: 'TimeoutError',
      code: 'TIMEOUT_ERR',
      timedOut: true,
    })
  })

  test('a fetch that the caller aborts is cancelled, not timed out', async () => {
    const failure = await serving(noAnswer, async (url) =>
      failureOf(await rejection(fetch(url, { signal: AbortSignal.abort() }))),
    )
    expect(failure).toMatchObject({ class: 'transient', code: 'ABORT_ERR', timedOut: false })
  })

  test('a timeout inside Node’s AbortError is found', async () => {
    const error = await rejection(delay(60_000, undefined, { signal: AbortSignal.timeout(1) }))
    const failure = failureOf(error)
    expect(failure).toMatchObject({ class: 'transient', code: 'ABORT_ERR', timedOut: true })
  })

  test('a server that closes the connection during the response', async () => {
    const failure = await serving(
      (request) => request.socket.destroy(),
      async (url) => failureOf(await rejection(fetch(url))),
    )
    expect(failure).toMatchObject({
      class: 'transient',
      code: 'UND_ERR_SOCKET',
      message: 'fetch failed; caused by SocketError: other side closed',
    })
  })

  test('an HTML page where a response should be JSON is not our payload’s fault', async () => {
    const failure = await serving(
      (_, response) => response.end('<html>'),
      async (url) => failureOf(await rejection(fetch(url).then((response) => response.json()))),
    )
    expect(failure).toMatchObject({ class: 'unknown', type: 'SyntaxError', code: 'INVALID_JSON' })
  })

  test('an attempt that ran too long', () => {
    const error = new RedriveError('ATTEMPT_TIMEOUT', 'ran for 30 s', { retryAfterMs: 5 })
    expect(failureOf(error)).toMatchObject({
      class: 'transient',
      type: 'RedriveError',
      code: 'ATTEMPT_TIMEOUT',
      timedOut: true,
      retryAfterMs: 5,
    })
  })
})

describe('causes', () => {
  const refused = (): Error => Object.assign(new Error('no listener'), { code: 'ECONNREFUSED' })

  test('the outermost error that is known decides', () => {
    const error = Object.assign(new Error('bad', { cause: refused() }), { status: 404 })
    expect(failureOf(error)).toMatchObject({ class: 'integration', code: 'HTTP 404' })
  })

  test('an unknown wrapper does not hide its cause, nor does its code', () => {
    const error = Object.assign(new Error('bad', { cause: refused() }), { code: 'CHARGE_FAILED' })
    expect(failureOf(error)).toMatchObject({ class: 'transient', code: 'ECONNREFUSED' })
  })

  test('the first code is shown when no class is known', () => {
    const error = new Error('bad', { cause: { code: 'A', cause: { code: 'B' } } })
    expect(failureOf(error)).toMatchObject({ class: 'unknown', code: 'A', timedOut: false })
  })

  test('a circular chain ends', () => {
    const error = new Error('a')
    error.cause = new Error('b', { cause: error })
    expect(failureOf(error)).toMatchObject({ class: 'unknown', message: 'a; caused by Error: b' })
  })

  test('an error that is its own cause is described once', () => {
    const error = new Error('a')
    error.cause = error
    expect(failureOf(error).message).toBe('a')
  })

  test('sixteen links are followed and no more', () => {
    expect(MAX_LINKS).toBe(16)
    expect(failureOf(wrapped(refused(), 15)).class).toBe('transient')
    expect(failureOf(wrapped(refused(), 16)).class).toBe('unknown')
  })

  test('no cause is not a cause', () => {
    expect(failureOf({ message: 'a', cause: null }).message).toBe('a')
    expect(failureOf({ message: 'a', cause: undefined }).message).toBe('a')
  })

  test('the several addresses of one host are one refused connection', () => {
    const members = ['::1:5432', '127.0.0.1:5432'].map((address) =>
      Object.assign(new Error(`connect ECONNREFUSED ${address}`), { code: 'ECONNREFUSED' }),
    )
    const error = Object.assign(new AggregateError(members), { code: 'ECONNREFUSED' })
    expect(failureOf(new TypeError('fetch failed', { cause: error }))).toMatchObject({
      class: 'transient',
      code: 'ECONNREFUSED',
      message: 'fetch failed; caused by Error: connect ECONNREFUSED ::1:5432',
    })
  })
})

describe('AggregateError', () => {
  const status = (value: number): Error => Object.assign(new Error('no'), { status: value })

  test.each([
    ['one of them is transient: another try may succeed', [404, 503], 'transient', 'HTTP 503'],
    ['all of them are permanent: the first names it', [404, 422], 'integration', 'HTTP 404'],
    ['one of them is unknown: giving up needs all', [404, 200], 'unknown', 'HTTP 404'],
  ])('%s', (_, statuses, expected, code) => {
    const error = new AggregateError(statuses.map(status), 'all failed')
    expect(failureOf(error)).toMatchObject({ class: expected, code })
  })

  test('the cause of an unknown member is read too', () => {
    const member = new Error('bad', { cause: status(503) })
    const error = new AggregateError([member, status(404)], 'all failed')
    expect(failureOf(error)).toMatchObject({ class: 'transient', code: 'HTTP 503' })
  })

  test('plain issues under `errors` are not errors', () => {
    const issue = { message: 'Required', code: 'ECONNREFUSED' }
    const error = Object.assign(new Error('invalid'), { errors: [issue] })
    expect(failureOf(error)).toMatchObject({ class: 'unknown', message: 'invalid' })
  })
})

describe('type', () => {
  class CardDeclined extends Error {}
  class Named extends Error {
    override name = 'PaymentRefused'
  }
  const inherited = [Error, TypeError, RangeError, SyntaxError, ReferenceError, URIError, EvalError]

  test.each(inherited.map((type) => [type.name, type] as const))(
    'a subclass of %s is known by the name of the subclass',
    (name, type) => {
      const Sub = class extends type {}
      Object.defineProperty(Sub, 'name', { value: 'Sub' })
      expect(failureOf(new type('no')).type).toBe(name)
      expect(failureOf(new Sub('no')).type).toBe('Sub')
    },
  )

  test.each([
    ['a subclass without a name', new CardDeclined('no'), 'CardDeclined'],
    ['a name that was set', new Named('no'), 'PaymentRefused'],
    ['a subclass of AggregateError', new (class Many extends AggregateError {})([]), 'Many'],
    [
      'pg’s lower-case name',
      Object.assign(new CardDeclined('no'), { name: 'error' }),
      'CardDeclined',
    ],
    ['no constructor', Object.assign(Object.create(null), { message: 'no' }), 'object'],
    ['a constructor without a name', { constructor: { name: '' } }, 'object'],
    ['a name and no constructor', Object.assign(Object.create(null), { name: 'Error' }), 'Error'],
    ['a plain object', {}, 'Object'],
    ['text', 'no', 'string'],
    ['null', null, 'null'],
    ['nothing', undefined, 'undefined'],
    ['a function', () => 1, 'function'],
  ])('%s', (_, error, expected) => {
    expect(failureOf(error).type).toBe(expected)
  })

  test('is bounded, whichever name it is', () => {
    const long = 'N'.repeat(200)
    expect(failureOf({ name: long }).type).toBe('N'.repeat(100))
    expect(failureOf({ constructor: { name: long } }).type).toBe('N'.repeat(100))
  })
})

describe('message', () => {
  test.each([
    ['text', 'no', 'no'],
    ['a number', 42, '42'],
    ['null', null, 'null'],
    ['nothing', undefined, 'undefined'],
    ['a symbol', Symbol('no'), 'Symbol(no)'],
    ['an error-like object', { message: 'no' }, 'no'],
    ['an object without a message', { reason: 1, code: 2 }, 'thrown object { reason, code }'],
    ['a message that is not text', { message: 1 }, 'thrown object { message }'],
    ['an object whose keys cannot be read', withoutKeys(), 'thrown object {  }'],
    ['a function', Object.assign(() => 1, { a: 1 }), 'thrown function { a }'],
    ['an empty message', new Error(), ''],
  ])('of %s', (_, error, expected) => {
    expect(failureOf(error).message).toBe(expected)
  })

  test('at most eight keys are named, each within bounds', () => {
    const keys = 'abcdefghij'.split('').map((key) => key.repeat(200))
    const error = Object.fromEntries(keys.map((key) => [key, 1]))
    const shown = 'abcdefgh'.split('').map((key) => key.repeat(100))
    const whole = `thrown object { ${shown.join(', ')} }`
    expect(failureOf(error).message).toBe(whole.slice(0, 500))
    expect(
      failureOf(Object.fromEntries('abcdefghij'.split('').map((key) => [key, 1]))).message,
    ).toBe('thrown object { a, b, c, d, e, f, g, h }')
  })

  test('issues replace the library’s own text, at most three', () => {
    const issues = [
      { message: 'Required', path: ['contact', 'email'] },
      { message: 'Too small', path: [{ key: 'items' }, 0] },
      { message: 'Nothing fits' },
      { message: 'Never shown', path: ['a'] },
    ]
    expect(failureOf(Object.assign(new Error('[{"code":…}]'), { issues })).message).toBe(
      'Required at /contact/email; Too small at /items/0; Nothing fits',
    )
  })

  test('an issue without a path has no location, and a deep path is shown to eight steps', () => {
    const deep = { message: 'Deep', path: 'abcdefghij'.split('') }
    expect(failureOf({ issues: [{ message: 'Flat', path: [] }] }).message).toBe('Flat')
    expect(failureOf({ issues: [deep] }).message).toBe('Deep at /a/b/c/d/e/f/g/h')
  })

  test('500 characters are kept and the next is cut', () => {
    expect(failureOf('x'.repeat(500)).message).toBe('x'.repeat(500))
    expect(failureOf('x'.repeat(501)).message).toBe('x'.repeat(500))
    expect(failureOf(new Error(`${'x'.repeat(500)}y`)).message).toBe('x'.repeat(500))
  })

  test.each([
    ['a pair across the end goes as a whole', `${'x'.repeat(499)}😀`, 'x'.repeat(499)],
    ['a pair before the end stays', `${'x'.repeat(498)}😀y`, `${'x'.repeat(498)}😀`],
    ['its lowest second half stays', `${'x'.repeat(498)}\u{10000}y`, `${'x'.repeat(498)}\u{10000}`],
    ['the lowest high surrogate', `${'x'.repeat(499)}\u{10000}`, 'x'.repeat(499)],
    ['the highest high surrogate', `${'x'.repeat(499)}\u{10ffff}`, 'x'.repeat(499)],
    ['a character just below', `${'x'.repeat(499)}\ud7ffy`, `${'x'.repeat(499)}\ud7ff`],
    ['a character just above', `${'x'.repeat(499)}\ue000y`, `${'x'.repeat(499)}\ue000`],
  ])('never ends inside a surrogate pair: %s', (_, text, expected) => {
    expect(failureOf(text).message).toBe(expected)
  })

  test('the deepest cause with a message is added', () => {
    const root = new RangeError('root', { cause: { message: ' ' } })
    const error = new Error('outer', { cause: new Error('middle', { cause: root }) })
    expect(failureOf(error).message).toBe('outer; caused by RangeError: root')
  })

  test('a cause that the message already contains is not repeated', () => {
    const cause = new Error('no listener')
    expect(failureOf(new Error(`charge: ${cause.message}`, { cause })).message).toBe(
      'charge: no listener',
    )
  })

  test('an empty wrapper is left out', () => {
    expect(failureOf(new Error(' ', { cause: new Error('root') })).message).toBe('root')
    expect(failureOf(new Error('outer', { cause: new Error('') })).message).toBe('outer')
  })

  test('a long message cannot displace its cause', () => {
    const error = new Error('x'.repeat(10_000), { cause: new Error('root'.repeat(1000)) })
    const { message } = failureOf(error)
    expect(message).toHaveLength(500)
    expect(message.startsWith(`${'x'.repeat(240)}; caused by Error: rootroot`)).toBe(true)
  })
})

describe('the message of an empty value', () => {
  test('is empty', () => {
    expect(chainOf([]).outer).toBe('')
  })
})

describe('stack', () => {
  test('has the frames without the message', () => {
    const { stack } = failureOf(new Error('two\nlines'))
    expect(stack?.split('\n')[0]).toMatch(/^ {4}at .*classify\.test\.ts/)
    expect(stack).not.toContain('lines')
  })

  test('is omitted when disabled, and the signature stays the same', () => {
    const error = new Error('no')
    const without = classify(error, { ...options, includeStack: false })
    expect(without.stack).toBeUndefined()
    expect(without.signature).toBe(failureOf(error).signature)
  })

  test.each([
    ['no stack', undefined, undefined],
    ['a stack that is not text', [1], undefined],
    ['a head alone', 'Error: no', undefined],
    ['a message that changed', 'Error: old\n    at a (/b.js:1:1)', '    at a (/b.js:1:1)'],
    ['a head without a message', 'Error\n    at a (/b.js:1:1)', '    at a (/b.js:1:1)'],
  ])('%s', (_, stack, expected) => {
    expect(failureOf({ message: 'no', stack }).stack).toBe(expected)
  })

  test('frames are found although the message grew after the error was made', () => {
    const message = 'a message that is much longer than the line it had before'
    const stack = 'Error: old\n    at a (/b.js:1:1)\n    at c (/d.js:1:1)'
    expect(failureOf({ message, stack }).stack).toBe('    at a (/b.js:1:1)\n    at c (/d.js:1:1)')
  })

  test('frames are found after any message, also after a message that looks like frames', () => {
    const message = 'no\n    at fake (/fake.js:1:1)'
    const stack = `Error: ${message}\n    at real (/real.js:1:1)`
    expect(failureOf({ message, stack }).stack).toBe('    at real (/real.js:1:1)')
  })

  test('an object with a stack and no message has its first line dropped', () => {
    expect(failureOf({ stack: 'head\n    at a (/b.js:1:1)' }).stack).toBe('    at a (/b.js:1:1)')
  })

  test('2048 characters are kept and the next is cut', () => {
    expect(failureOf({ stack: `head\n${'x'.repeat(2048)}` }).stack).toBe('x'.repeat(2048))
    expect(failureOf({ stack: `head\n${'x'.repeat(2049)}` }).stack).toBe('x'.repeat(2048))
    expect(failureOf({ stack: `head\n${'x'.repeat(2047)}😀` }).stack).toBe('x'.repeat(2047))
  })

  test('a message of ten million characters does not displace the frames', () => {
    const failure = failureOf(new Error('x'.repeat(10_000_000)))
    expect(failure.message).toBe('x'.repeat(500))
    expect(failure.stack).toContain('classify.test.ts')
  })
})

function wrapped(error: Error, times: number): Error {
  return times === 0 ? error : new Error('wrapper', { cause: wrapped(error, times - 1) })
}

async function rejection(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => Promise.reject(new Error('it did not fail')),
    (error: unknown) => error,
  )
}

async function closedPort(): Promise<number> {
  const server = createTcpServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

const noAnswer: RequestListener = () => undefined

async function serving<T>(answer: RequestListener, use: (url: string) => Promise<T>): Promise<T> {
  const server = createServer(answer).listen(0, '127.0.0.1')
  await once(server, 'listening')
  try {
    return await use(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`)
  } finally {
    server.closeAllConnections()
    server.close()
  }
}

describe('the signature', () => {
  const thrownHere = (make: () => Error) => make()
  const thrownThere = (make: () => Error) => make()
  const signatures = (make: () => Error, rules: readonly Rule[] = []) =>
    [thrownHere, thrownThere].map((place) => {
      const error = place(make)
      const frames = `    at ${place.name} (/app/src/${place.name}.ts:1:1)`
      Object.assign(error, { stack: `Error: ${error.message}\n${frames}` })
      return classify(error, { ...options, rules }).signature
    })

  test('of an unknown error depends on its origin', () => {
    const [here, there] = signatures(() => new Error('it broke'))
    expect(here).not.toBe(there)
  })

  test('of a known error does not depend on the stack, and does not read it', () => {
    class Declined extends Error {}
    const [here, there] = signatures(() => new Declined('no'), [business(Declined)])
    expect(here).toBe(there)
    const silent = Object.defineProperty(new Declined('no'), 'stack', {
      get: () => expect.unreachable('the stack is read'),
    })
    const failure = classify(silent, {
      ...options,
      includeStack: false,
      rules: [business(Declined)],
    })
    expect(failure.signature).toBe(here)
  })
})
