import Fastify from 'fastify'
import { describe, expect, test } from 'vitest'
import type { Caller } from '../src/access/caller.ts'
import { ProblemError } from '../src/access/problem-error.ts'
import { refuseForgery } from '../src/http/csrf.ts'
import { addSecurityHeaders, relaxPolicy } from '../src/http/headers.ts'
import { csrfOfSecret, isSame, newSecret } from '../src/identity/secrets.ts'
import { publicUrlOf } from '../src/identity/public-url.ts'

const OURS = 'https://redrive.test'
const CSRF = csrfOfSecret(newSecret())

const callerBy = (via: Caller['via']): Caller => ({
  person: 'alice',
  name: 'Alice',
  via,
  grants: [],
  isAgent: false,
  credential: undefined,
})

function isAccepted(
  headers: Record<string, string>,
  { via = 'session', method = 'POST' }: { via?: Caller['via']; method?: string } = {},
): boolean {
  try {
    refuseForgery({ method, headers }, { caller: callerBy(via), csrf: CSRF, origin: OURS })
    return true
  } catch (error) {
    if (!(error instanceof ProblemError) || error.code !== 'forbidden') throw error
    return false
  }
}

const GOOD = { origin: OURS, 'sec-fetch-site': 'same-origin', 'x-redrive-csrf': CSRF }
const JSON_BODY = { 'content-type': 'application/json; charset=utf-8', 'content-length': '2' }
const { origin: _origin, ...NO_ORIGIN } = GOOD
const { 'x-redrive-csrf': _csrf, ...NO_TOKEN } = GOOD
const { 'sec-fetch-site': _site, ...NO_SITE } = GOOD

describe('a mutation with a session', () => {
  test.for<readonly [string, Record<string, string>]>([
    ['from a page of the server', GOOD],
    ['with JSON', { ...GOOD, ...JSON_BODY }],
    ['without Sec-Fetch-Site', NO_SITE],
    ['without Origin, with Sec-Fetch-Site same-origin', NO_ORIGIN],
  ])('%s is accepted', ([, headers]) => {
    expect(isAccepted(headers)).toBe(true)
  })

  test.for<readonly [string, Record<string, string>]>([
    ['from another site', { ...GOOD, origin: 'https://evil.test', 'sec-fetch-site': 'cross-site' }],
    ['from the origin "null"', { ...GOOD, origin: 'null' }],
    ['from a host with the same prefix', { ...NO_SITE, origin: `${OURS}.evil.test` }],
    ['from the same host without TLS', { ...NO_SITE, origin: 'http://redrive.test' }],
    ['from another port', { ...NO_SITE, origin: `${OURS}:8443` }],
    ['from the same site, but another origin', { ...NO_ORIGIN, 'sec-fetch-site': 'same-site' }],
    [
      'with the right Origin and Sec-Fetch-Site cross-site',
      { ...GOOD, 'sec-fetch-site': 'cross-site' },
    ],
    ['with neither Origin nor Sec-Fetch-Site', { 'x-redrive-csrf': CSRF }],
    ['without Origin, typed into the address bar', { ...NO_ORIGIN, 'sec-fetch-site': 'none' }],
    ['without the CSRF token', NO_TOKEN],
    [
      'with the CSRF token of another session',
      { ...GOOD, 'x-redrive-csrf': csrfOfSecret('other') },
    ],
    ['with an empty CSRF token', { ...GOOD, 'x-redrive-csrf': '' }],
    ['with a form body', { ...GOOD, 'content-type': 'application/x-www-form-urlencoded' }],
    ['with a text body', { ...GOOD, 'content-type': 'text/plain', 'content-length': '2' }],
    [
      'with a multipart body',
      { ...GOOD, 'content-type': 'multipart/form-data; boundary=application/json' },
    ],
    ['with a body without content type', { ...GOOD, 'content-length': '2' }],
    ['with a chunked body without content type', { ...GOOD, 'transfer-encoding': 'chunked' }],
  ])('%s is rejected', ([, headers]) => {
    expect(isAccepted(headers)).toBe(false)
  })

  test.for(['PUT', 'PATCH', 'DELETE', 'OPTIONS', 'QUERY'])(
    'is checked for the method %s',
    (method) => {
      expect(isAccepted({}, { method })).toBe(false)
    },
  )

  test('is rejected when the session has no CSRF token', () => {
    const against = { caller: callerBy('session'), csrf: undefined, origin: OURS }
    expect(() => refuseForgery({ method: 'POST', headers: GOOD }, against)).toThrow(/CSRF/)
  })
})

test('reads and requests with a token need no CSRF token', () => {
  expect(isAccepted({ origin: 'https://evil.test' }, { method: 'GET' })).toBe(true)
  expect(isAccepted({ origin: 'https://evil.test' }, { via: 'token' })).toBe(true)
})

test('development mode accepts programs and rejects pages of other sites', () => {
  const via = 'development'
  expect(isAccepted({}, { via })).toBe(true)
  expect(isAccepted(JSON_BODY, { via })).toBe(true)
  expect(isAccepted({ origin: OURS, 'sec-fetch-site': 'same-origin' }, { via })).toBe(true)
  expect(isAccepted({ origin: 'https://evil.test' }, { via })).toBe(false)
  expect(isAccepted({ 'sec-fetch-site': 'cross-site' }, { via })).toBe(false)
  expect(isAccepted({ 'content-type': 'text/plain', 'content-length': '1' }, { via })).toBe(false)
})

test('isSame compares secrets of any length', () => {
  expect(isSame('a', 'a')).toBe(true)
  expect(isSame('a', 'ab')).toBe(false)
  expect(isSame('', 'a')).toBe(false)
})

describe('every response', () => {
  async function headersAt(publicUrl: string, path = '/') {
    const app = Fastify()
    addSecurityHeaders(app, { publicUrl })
    app.get('/', async () => 'x')
    app.get('/reference', async (_request, reply) => {
      relaxPolicy(reply, {
        'style-src': "'self' 'unsafe-inline'",
        'require-trusted-types-for': undefined,
      })
      return 'x'
    })
    const { headers } = await app.inject({ url: path, headers: { origin: 'https://evil.test' } })
    return headers
  }

  test('has the security headers, also with status 404', async () => {
    for (const path of ['/', '/nowhere']) {
      const headers = await headersAt(OURS, path)
      expect(headers['content-security-policy']).toBe(
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; font-src 'self'; manifest-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'; require-trusted-types-for 'script'",
      )
      expect(headers).toMatchObject({
        'x-content-type-options': 'nosniff',
        'cross-origin-opener-policy': 'same-origin',
        'cross-origin-resource-policy': 'same-origin',
        'referrer-policy': 'no-referrer',
        'strict-transport-security': 'max-age=63072000; includeSubDomains',
      })
      expect(Object.keys(headers).filter((name) => name.startsWith('access-control'))).toEqual([])
    }
  })

  test('has strict-transport-security only with https', async () => {
    const headers = await headersAt('http://127.0.0.1:8080')
    expect(headers['strict-transport-security']).toBeUndefined()
  })

  test('of one page can have a relaxed policy', async () => {
    const policy = (await headersAt(OURS, '/reference'))['content-security-policy']
    expect(policy).toContain("style-src 'self' 'unsafe-inline'")
    expect(policy).not.toContain('trusted-types')
    expect(policy).toContain("default-src 'none'")
  })
})

test('cookies without TLS have another name and are set only for loopback hosts', () => {
  expect(publicUrlOf(OURS).cookies.session).toBe('__Host-redrive')
  for (const url of ['http://127.0.0.1:1', 'http://localhost:1', 'http://[::1]:1']) {
    expect(publicUrlOf(url).cookies.session).not.toMatch(/^__Host-/)
  }
  for (const url of ['http://redrive.test', 'http://10.0.0.1', 'http://localhost.evil.test']) {
    expect(() => publicUrlOf(url)).toThrow(/https/)
  }
})
