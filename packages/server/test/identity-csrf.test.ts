import Fastify from 'fastify'
import { describe, expect, test } from 'vitest'
import type { Caller } from '../src/access/caller.ts'
import { Refusal } from '../src/access/refusal.ts'
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

function isLetThrough(
  headers: Record<string, string>,
  { via = 'session', method = 'POST' }: { via?: Caller['via']; method?: string } = {},
): boolean {
  try {
    refuseForgery({ method, headers }, { caller: callerBy(via), csrf: CSRF, origin: OURS })
    return true
  } catch (error) {
    if (!(error instanceof Refusal) || error.code !== 'forbidden') throw error
    return false
  }
}

const GOOD = { origin: OURS, 'sec-fetch-site': 'same-origin', 'x-redrive-csrf': CSRF }
const JSON_BODY = { 'content-type': 'application/json; charset=utf-8', 'content-length': '2' }
const { origin: _origin, ...NO_ORIGIN } = GOOD
const { 'x-redrive-csrf': _csrf, ...NO_PROOF } = GOOD
const { 'sec-fetch-site': _site, ...NO_SITE } = GOOD

describe('a change with a session', () => {
  test.for<readonly [string, Record<string, string>]>([
    ['of our page', GOOD],
    ['with JSON', { ...GOOD, ...JSON_BODY }],
    ['without Sec-Fetch-Site', NO_SITE],
    ['without Origin, but of the same origin', NO_ORIGIN],
  ])('%s is let through', ([, headers]) => {
    expect(isLetThrough(headers)).toBe(true)
  })

  test.for<readonly [string, Record<string, string>]>([
    ['of another site', { ...GOOD, origin: 'https://evil.test', 'sec-fetch-site': 'cross-site' }],
    ['of another origin that hides where it is', { ...GOOD, origin: 'null' }],
    ['of a name that begins like ours', { ...NO_SITE, origin: `${OURS}.evil.test` }],
    ['of our name without TLS', { ...NO_SITE, origin: 'http://redrive.test' }],
    ['of another port', { ...NO_SITE, origin: `${OURS}:8443` }],
    ['of a sister site', { ...NO_ORIGIN, 'sec-fetch-site': 'same-site' }],
    ['of our origin as a browser does not see it', { ...GOOD, 'sec-fetch-site': 'cross-site' }],
    ['with neither Origin nor Sec-Fetch-Site', { 'x-redrive-csrf': CSRF }],
    ['without Origin, typed into the address bar', { ...NO_ORIGIN, 'sec-fetch-site': 'none' }],
    ['without the proof', NO_PROOF],
    ['with the proof of another session', { ...GOOD, 'x-redrive-csrf': csrfOfSecret('other') }],
    ['with an empty proof', { ...GOOD, 'x-redrive-csrf': '' }],
    ['of a form', { ...GOOD, 'content-type': 'application/x-www-form-urlencoded' }],
    ['of text', { ...GOOD, 'content-type': 'text/plain', 'content-length': '2' }],
    ['of a file', { ...GOOD, 'content-type': 'multipart/form-data; boundary=application/json' }],
    ['of nothing in particular', { ...GOOD, 'content-length': '2' }],
    ['of something that never ends', { ...GOOD, 'transfer-encoding': 'chunked' }],
  ])('%s is refused', ([, headers]) => {
    expect(isLetThrough(headers)).toBe(false)
  })

  test.for(['PUT', 'PATCH', 'DELETE', 'OPTIONS', 'QUERY'])(
    'by %s is looked at as well',
    (method) => {
      expect(isLetThrough({}, { method })).toBe(false)
    },
  )

  test('is refused when there is no proof to compare with', () => {
    const against = { caller: callerBy('session'), csrf: undefined, origin: OURS }
    expect(() => refuseForgery({ method: 'POST', headers: GOOD }, against)).toThrow(/CSRF/)
  })
})

test('reading and tokens need no proof', () => {
  expect(isLetThrough({ origin: 'https://evil.test' }, { method: 'GET' })).toBe(true)
  expect(isLetThrough({ origin: 'https://evil.test' }, { via: 'token' })).toBe(true)
})

test('in development programs come as they are, and pages of other sites do not', () => {
  const via = 'development'
  expect(isLetThrough({}, { via })).toBe(true)
  expect(isLetThrough(JSON_BODY, { via })).toBe(true)
  expect(isLetThrough({ origin: OURS, 'sec-fetch-site': 'same-origin' }, { via })).toBe(true)
  expect(isLetThrough({ origin: 'https://evil.test' }, { via })).toBe(false)
  expect(isLetThrough({ 'sec-fetch-site': 'cross-site' }, { via })).toBe(false)
  expect(isLetThrough({ 'content-type': 'text/plain', 'content-length': '1' }, { via })).toBe(false)
})

test('secrets of any length are compared without an error', () => {
  expect(isSame('a', 'a')).toBe(true)
  expect(isSame('a', 'ab')).toBe(false)
  expect(isSame('', 'a')).toBe(false)
})

describe('every answer', () => {
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

  test('keeps browsers from everything that we do not need, also when nothing is found', async () => {
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

  test('asks for https only where there is https', async () => {
    const headers = await headersAt('http://127.0.0.1:8080')
    expect(headers['strict-transport-security']).toBeUndefined()
  })

  test('of one page may be let off a rule, and keeps the others', async () => {
    const policy = (await headersAt(OURS, '/reference'))['content-security-policy']
    expect(policy).toContain("style-src 'self' 'unsafe-inline'")
    expect(policy).not.toContain('trusted-types')
    expect(policy).toContain("default-src 'none'")
  })
})

test('cookies without TLS are set on this machine alone, under another name', () => {
  expect(publicUrlOf(OURS).cookies.session).toBe('__Host-redrive')
  for (const url of ['http://127.0.0.1:1', 'http://localhost:1', 'http://[::1]:1']) {
    expect(publicUrlOf(url).cookies.session).not.toMatch(/^__Host-/)
  }
  for (const url of ['http://redrive.test', 'http://10.0.0.1', 'http://localhost.evil.test']) {
    expect(() => publicUrlOf(url)).toThrow(/https/)
  }
})
