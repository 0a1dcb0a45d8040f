import { exportJWK, generateKeyPair, type JWTPayload, SignJWT } from 'jose'
import { beforeAll, describe, expect, test } from 'vitest'
import { serverDatabase } from './database-stage.ts'
import { Browser, CLIENT, listening, portOf, type World, worldOf } from './identity-stage.ts'

/** These tests use a fake provider that can send invalid responses. */
const pool = await serverDatabase('redrive_server_provider')

interface FakeResponse {
  readonly claims?: JWTPayload & { readonly groups?: unknown }
  readonly key?: typeof privateKey
  /** Replaces the signed ID token. */
  readonly idToken?: (payload: JWTPayload) => string | undefined
}

let issuer: string
let world: World
let fake: FakeResponse
let nonce: string
const { privateKey, publicKey } = await generateKeyPair('RS256')
const stranger = await generateKeyPair('RS256')

async function idToken(): Promise<string | undefined> {
  const now = Math.floor(Date.now() / 1_000)
  const valid = { iss: issuer, aud: CLIENT.id, sub: 'carol', nonce, iat: now, exp: now + 60 }
  const claims = { groups: ['operators'], name: 'Carol', ...valid, ...fake.claims }
  if (fake.idToken !== undefined) return fake.idToken(claims)
  return new SignJWT(claims)
    .setProtectedHeader({ alg: 'RS256', kid: 'one' })
    .sign(fake.key ?? privateKey)
}

const responses: Readonly<Record<string, () => unknown>> = {
  '/.well-known/openid-configuration': () => ({
    issuer,
    authorization_endpoint: `${issuer}/authorize`,
    token_endpoint: `${issuer}/token`,
    jwks_uri: `${issuer}/keys`,
    response_types_supported: ['code'],
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: ['RS256'],
  }),
  '/keys': async () => ({
    keys: [{ ...(await exportJWK(publicKey)), kid: 'one', alg: 'RS256', use: 'sig' }],
  }),
  '/token': async () => ({
    access_token: 'access',
    token_type: 'Bearer',
    id_token: await idToken(),
  }),
}

beforeAll(async () => {
  const server = await listening((request, response) => {
    const respond = responses[request.url ?? '']
    Promise.resolve(respond?.()).then(
      (body) => {
        response.setHeader('content-type', 'application/json').end(JSON.stringify(body ?? {}))
      },
      (error: unknown) => response.destroy(error as Error),
    )
  })
  issuer = `http://127.0.0.1:${portOf(server)}`
  world = await worldOf({ pool, issuer })
})

async function loginWith(response: FakeResponse) {
  fake = response
  const browser = new Browser(world)
  const { searchParams } = new URL(await browser.begin())
  nonce = searchParams.get('nonce') as string
  const state = searchParams.get('state') as string
  return { browser, answer: await browser.get(`/auth/callback?code=any&state=${state}`) }
}

const unsigned = (payload: JWTPayload) =>
  [{ alg: 'none' }, payload]
    .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
    .join('.')
    .concat('.')

describe('a response of the provider', () => {
  test('is accepted when it is valid', async () => {
    const { browser, answer } = await loginWith({})
    expect(answer.statusCode).toBe(302)
    expect(await browser.me()).toMatchObject({ person: `${issuer}#carol`, name: 'Carol' })
  })

  test('is requested with PKCE, state and nonce, which are not in the cookie', async () => {
    const browser = new Browser(world)
    const parameters = new URL(await browser.begin()).searchParams
    expect(parameters.get('code_challenge_method')).toBe('S256')
    const cookie = browser.ours.header
    for (const name of ['state', 'nonce', 'code_challenge']) {
      expect(parameters.get(name)).toMatch(/^[\w-]{43}$/)
      expect(cookie).not.toContain(parameters.get(name))
    }
  })

  const past = Math.floor(Date.now() / 1_000) - 3_600
  test.for<readonly [string, FakeResponse]>([
    ['another nonce', { claims: { nonce: 'another' } }],
    ['another issuer', { claims: { iss: 'https://evil.test' } }],
    ['an issuer with a slash at the end', { claims: { iss: 'http://127.0.0.1/' } }],
    ['another audience', { claims: { aud: 'another' } }],
    ['an expired ID token', { claims: { exp: past } }],
    ['a signature of another key', { key: stranger.privateKey }],
    ['no signature', { idToken: unsigned }],
    ['no ID token', { idToken: () => undefined }],
    ['no subject', { claims: { sub: '' } }],
    ['a subject of 256 characters', { claims: { sub: 'x'.repeat(256) } }],
    ['too many groups', { claims: { groups: Array.from({ length: 5_001 }, String) } }],
  ])('is rejected with %s', async ([, response]) => {
    const { browser, answer } = await loginWith(response)
    expect(answer.statusCode).toBe(403)
    expect(await browser.me()).toBeUndefined()
    expect(world.audited.at(-1)).toMatchObject({ operation: 'login', outcome: 'denied' })
  })

  test('gives no grants when the groups claim is not a list of texts', async () => {
    for (const groups of [{ operators: true }, 7, null, [['operators'], { name: 'operators' }]]) {
      const { browser } = await loginWith({ claims: { groups } })
      expect((await browser.me())?.grants).toEqual([])
    }
    const { browser } = await loginWith({ claims: { groups: 'operators' } })
    expect((await browser.me())?.grants).toHaveLength(1)
  })

  test('distinguishes two users with the same name and email', async () => {
    const one = await loginWith({ claims: { sub: '1', email: 'same@example.com' } })
    const two = await loginWith({ claims: { sub: '2', email: 'same@example.com' } })
    expect((await one.browser.me())?.person).not.toBe((await two.browser.me())?.person)
  })

  test('with an error is reported to the user without the text of the provider', async () => {
    const browser = new Browser(world)
    const state = new URL(await browser.begin()).searchParams.get('state') as string
    const words = encodeURIComponent('<script>alert(1)</script>')
    const back = `/auth/callback?error=access_denied&error_description=${words}&state=${state}`
    const answer = await browser.get(back)
    expect(answer.statusCode).toBe(403)
    expect(answer.headers['content-type']).toBe('text/plain; charset=utf-8')
    expect(answer.body).not.toContain('script')
  })
})
