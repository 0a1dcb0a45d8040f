import { exportJWK, generateKeyPair, type JWTPayload, SignJWT } from 'jose'
import { beforeAll, describe, expect, test } from 'vitest'
import { serverDatabase } from './database-stage.ts'
import { Browser, CLIENT, listening, portOf, type World, worldOf } from './identity-stage.ts'

/** A provider that says whatever it is told to say: a real one never lies. */
const pool = await serverDatabase('redrive_server_provider')

interface Lie {
  readonly claims?: JWTPayload & { readonly groups?: unknown }
  readonly key?: typeof privateKey
  /** Instead of a signed ID token. */
  readonly idToken?: (payload: JWTPayload) => string | undefined
}

let issuer: string
let world: World
let lie: Lie
let nonce: string
const { privateKey, publicKey } = await generateKeyPair('RS256')
const stranger = await generateKeyPair('RS256')

async function idToken(): Promise<string | undefined> {
  const now = Math.floor(Date.now() / 1_000)
  const honest = { iss: issuer, aud: CLIENT.id, sub: 'carol', nonce, iat: now, exp: now + 60 }
  const claims = { groups: ['operators'], name: 'Carol', ...honest, ...lie.claims }
  if (lie.idToken !== undefined) return lie.idToken(claims)
  return new SignJWT(claims)
    .setProtectedHeader({ alg: 'RS256', kid: 'one' })
    .sign(lie.key ?? privateKey)
}

const answers: Readonly<Record<string, () => unknown>> = {
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
    const answer = answers[request.url ?? '']
    Promise.resolve(answer?.()).then(
      (body) => {
        response.setHeader('content-type', 'application/json').end(JSON.stringify(body ?? {}))
      },
      (error: unknown) => response.destroy(error as Error),
    )
  })
  issuer = `http://127.0.0.1:${portOf(server)}`
  world = await worldOf({ pool, issuer })
})

async function loginWith(said: Lie) {
  lie = said
  const browser = new Browser(world)
  const asked = new URL(await browser.begin())
  nonce = asked.searchParams.get('nonce') as string
  const state = asked.searchParams.get('state') as string
  return { browser, answer: await browser.get(`/auth/callback?code=any&state=${state}`) }
}

const unsigned = (payload: JWTPayload) =>
  [{ alg: 'none' }, payload]
    .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
    .join('.')
    .concat('.')

describe('what a provider says', () => {
  test('is believed when everything fits', async () => {
    const { browser, answer } = await loginWith({})
    expect(answer.statusCode).toBe(302)
    expect(await browser.me()).toMatchObject({ person: `${issuer}#carol`, name: 'Carol' })
  })

  test('is asked for with PKCE, a state and a nonce, and nothing of it is in the cookie', async () => {
    const browser = new Browser(world)
    const asked = new URL(await browser.begin()).searchParams
    expect(asked.get('code_challenge_method')).toBe('S256')
    const cookie = browser.ours.header
    for (const name of ['state', 'nonce', 'code_challenge']) {
      expect(asked.get(name)).toMatch(/^[\w-]{43}$/)
      expect(cookie).not.toContain(asked.get(name))
    }
  })

  const past = Math.floor(Date.now() / 1_000) - 3_600
  test.for<readonly [string, Lie]>([
    ['another nonce', { claims: { nonce: 'another' } }],
    ['another issuer', { claims: { iss: 'https://evil.test' } }],
    ['an issuer with a slash at the end', { claims: { iss: 'http://127.0.0.1/' } }],
    ['another audience', { claims: { aud: 'another' } }],
    ['an ID token that is over', { claims: { exp: past } }],
    ['a signature of a stranger', { key: stranger.privateKey }],
    ['no signature', { idToken: unsigned }],
    ['no ID token', { idToken: () => undefined }],
    ['no subject', { claims: { sub: '' } }],
    ['a subject of 256 characters', { claims: { sub: 'x'.repeat(256) } }],
    ['more groups than can be', { claims: { groups: Array.from({ length: 5_001 }, String) } }],
  ])('is not believed with %s', async ([, said]) => {
    const { browser, answer } = await loginWith(said)
    expect(answer.statusCode).toBe(403)
    expect(await browser.me()).toBeUndefined()
    expect(world.audited.at(-1)).toMatchObject({ what: 'login', outcome: 'denied' })
  })

  test('gives no grants by a claim that is no list of groups', async () => {
    for (const groups of [{ operators: true }, 7, null, [['operators'], { name: 'operators' }]]) {
      const { browser } = await loginWith({ claims: { groups } })
      expect((await browser.me())?.grants).toEqual([])
    }
    const { browser } = await loginWith({ claims: { groups: 'operators' } })
    expect((await browser.me())?.grants).toHaveLength(1)
  })

  test('tells apart two people with the same name and mail', async () => {
    const one = await loginWith({ claims: { sub: '1', email: 'same@example.com' } })
    const two = await loginWith({ claims: { sub: '2', email: 'same@example.com' } })
    expect((await one.browser.me())?.person).not.toBe((await two.browser.me())?.person)
  })

  test('when it refuses is told to the person, without its words', async () => {
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
