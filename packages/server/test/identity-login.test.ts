import { beforeAll, describe, expect, test } from 'vitest'
import { serverDatabase } from './database-stage.ts'
import { Browser, GROUPS, HTTPS, openIdProvider, type World, worldOf } from './identity-stage.ts'

const pool = await serverDatabase('redrive_server_login')
const CALLBACK = `${HTTPS}/auth/callback`
let issuer: string
let world: World

beforeAll(async () => {
  issuer = await openIdProvider([CALLBACK])
  world = await worldOf({ pool, issuer })
})

describe('a login at a real provider', () => {
  test('creates a session with issuer and subject and redirects to the original page', async () => {
    const browser = new Browser(world)
    const answer = await browser.login('alice', '/groups?state=open#top')
    expect(answer.statusCode).toBe(302)
    expect(answer.headers.location).toBe(`${HTTPS}/groups?state=open#top`)
    const me = await browser.me()
    expect(me).toMatchObject({
      person: `${issuer}#alice`,
      name: 'alice of Example',
      via: 'session',
      grants: [{ sources: ['orders*'] }],
    })
    expect(me?.csrf).toMatch(/^[\w-]{43}$/)
  })

  test('sets a cookie that scripts, other hosts and plain http cannot read', async () => {
    const browser = new Browser(world)
    const answer = await browser.login('alice')
    const lines = [answer.headers['set-cookie'] ?? []].flat()
    const session = lines.find((line) => line.startsWith('__Host-redrive='))
    expect(session).toMatch(/; Path=\/(;|$)/)
    expect(session).toMatch(/; HttpOnly(;|$)/)
    expect(session).toMatch(/; Secure(;|$)/)
    expect(session).toMatch(/; SameSite=Lax(;|$)/)
    expect(session).not.toMatch(/Domain/i)
    expect(browser.ours.cookies.has('__Host-redrive-login')).toBe(false)
  })

  test('stores the hash of the secret and not the secret', async () => {
    const browser = new Browser(world)
    await browser.login('alice')
    const secret = browser.ours.cookies.get('__Host-redrive') as string
    const { rows } = await pool.query<{ text: string }>(
      `select session::text || encode(secret_hash, 'escape') as text from redrive_server.session`,
    )
    expect(rows.length).toBeGreaterThan(0)
    expect(rows.some(({ text }) => text.includes(secret))).toBe(false)
  })

  test('audits successful and rejected logins', async () => {
    const browser = new Browser(world)
    await browser.login('bob')
    expect(world.audited.at(-1)).toMatchObject({
      operation: 'login',
      outcome: 'done',
      caller: { person: `${issuer}#bob` },
      facts: { groups: ['viewers'] },
    })
    await browser.begin()
    await browser.get('/auth/callback?code=1&state=2')
    expect(world.audited.at(-1)).toMatchObject({
      operation: 'login',
      outcome: 'denied',
      caller: undefined,
    })
  })

  test('is not audited when it was not started here, so that clients cannot fill the audit log', async () => {
    const before = world.audited.length
    const browser = new Browser(world)
    const answer = await browser.get('/auth/callback?code=1&state=2')
    expect(answer.statusCode).toBe(403)
    browser.ours.cookies.set('__Host-redrive-login', 'a'.repeat(43))
    expect((await browser.get('/auth/callback?code=1&state=2')).statusCode).toBe(403)
    expect(world.audited).toHaveLength(before)
  })

  test('fails when it cannot be audited', async () => {
    const other = await worldOf({ pool, issuer })
    other.audited.push = () => {
      throw new Error('the audit is gone')
    }
    const browser = new Browser(other)
    const answer = await browser.login('alice')
    expect(answer.statusCode).toBe(503)
    expect(browser.ours.cookies.has('__Host-redrive')).toBe(false)
  })

  test('fails with a text for users when the provider is unreachable', async () => {
    const other = await worldOf({ pool, issuer: 'http://127.0.0.1:9' })
    const answer = await new Browser(other).get('/auth/login')
    expect(answer.statusCode).toBe(503)
    expect(answer.headers['content-type']).toMatch(/^text\/plain/)
    expect(answer.body).toMatch(/Try again/)
  })

  test('fails when the provider has another issuer', async () => {
    const other = await worldOf({ pool, issuer: issuer.replace('127.0.0.1', 'localhost') })
    const answer = await new Browser(other).get('/auth/login')
    expect(answer.statusCode).toBe(503)
  })
})

describe('attacks on a login', () => {
  test('a session from before the login is invalid after it', async () => {
    const attacker = new Browser(world)
    await attacker.login('bob')
    const planted = attacker.ours.cookies.get('__Host-redrive') as string
    const victim = new Browser(world)
    victim.ours.cookies.set('__Host-redrive', planted)
    await victim.login('alice')
    expect(victim.ours.cookies.get('__Host-redrive')).not.toBe(planted)
    expect((await victim.me())?.person).toBe(`${issuer}#alice`)
    expect(await attacker.me()).toBeUndefined()
  })

  test('an invented secret never becomes a session', async () => {
    const browser = new Browser(world)
    browser.ours.cookies.set('__Host-redrive', 'a'.repeat(43))
    expect(await browser.me()).toBeUndefined()
    await browser.login('alice')
    expect(browser.ours.cookies.get('__Host-redrive')).not.toBe('a'.repeat(43))
  })

  test('a callback works only once', async () => {
    const browser = new Browser(world)
    const back = await browser.atProvider(await browser.begin(), 'alice')
    const cookie = browser.ours.header
    expect((await browser.get(back)).statusCode).toBe(302)
    const again = await world.app.inject({ url: back, headers: { cookie } })
    expect(again.statusCode).toBe(403)
    expect(again.body).toMatch(/Start again at \/auth\/login/)
    expect(again.headers['set-cookie']).not.toEqual(expect.stringContaining('__Host-redrive='))
  })

  test('a callback for one browser is rejected in another', async () => {
    const attacker = new Browser(world)
    const back = await attacker.atProvider(await attacker.begin(), 'bob')
    const victim = new Browser(world)
    expect((await victim.get(back)).statusCode).toBe(403)
    await victim.begin()
    expect((await victim.get(back)).statusCode).toBe(403)
    expect(await victim.me()).toBeUndefined()
  })

  test.for([
    ['another state', (url: URL) => url.searchParams.set('state', 'another')],
    ['no state', (url: URL) => url.searchParams.delete('state')],
    ['another issuer', (url: URL) => url.searchParams.set('iss', 'https://evil.test')],
    ['another code', (url: URL) => url.searchParams.set('code', 'another')],
    ['two codes', (url: URL) => url.searchParams.append('code', 'another')],
  ] as const)('a callback with %s is rejected', async ([, change]) => {
    const browser = new Browser(world)
    const url = new URL(await browser.atProvider(await browser.begin(), 'alice'), HTTPS)
    change(url)
    const answer = await browser.get(url.pathname + url.search)
    expect(answer.statusCode).toBe(403)
    expect(await browser.me()).toBeUndefined()
    expect(world.audited.at(-1)).toMatchObject({ operation: 'login', outcome: 'denied' })
  })

  test.for(['nonce', 'verifier'])(
    'a callback that does not match the %s is rejected',
    async (column) => {
      const browser = new Browser(world)
      const back = await browser.atProvider(await browser.begin(), 'alice')
      await pool.query(`update redrive_server.login set ${column} = repeat('x', 43)`)
      expect((await browser.get(back)).statusCode).toBe(403)
      expect(await browser.me()).toBeUndefined()
    },
  )

  test('a login that took too long is rejected', async () => {
    const browser = new Browser(world)
    const back = await browser.atProvider(await browser.begin(), 'alice')
    await pool.query(`update redrive_server.login set expires_at = now() - interval '1 s'`)
    const answer = await browser.get(back)
    expect(answer.statusCode).toBe(403)
    expect(answer.body).toMatch(/10 minutes/)
  })

  test.for([
    'https://evil.test/',
    '//evil.test/',
    '/\\evil.test/',
    '/.//evil.test/',
    '/\t/evil.test/',
    'javascript:alert(1)',
    'evil.test',
    '/auth/login',
    '/%0d%0aset-cookie:a=b',
    '@evil.test',
  ])('a login does not redirect to another site for %j', async (returnTo) => {
    const answer = await new Browser(world).login('alice', returnTo)
    expect(answer.statusCode).toBe(302)
    const location = answer.headers.location as string
    expect(new URL(location, 'https://elsewhere.test').origin).toBe(HTTPS)
    expect(location).not.toMatch(/[\r\n]/)
  })
})

describe('a session', () => {
  const age = (column: string, by: string) =>
    pool.query(`update redrive_server.session set ${column} = ${column} - interval '${by}'`)

  test('ends after the idle time', async () => {
    const browser = new Browser(world)
    await browser.login('alice')
    await age('seen_at', '29 min')
    expect(await browser.me()).toBeDefined()
    // The request above restarted the idle time.
    await age('seen_at', '29 min')
    expect(await browser.me()).toBeDefined()
    await age('seen_at', '31 min')
    expect(await browser.me()).toBeUndefined()
  })

  test('ends after the maximum duration', async () => {
    const browser = new Browser(world)
    await browser.login('alice')
    await age('created_at', '11 hours')
    expect(await browser.me()).toBeDefined()
    await age('created_at', '1 hour')
    expect(await browser.me()).toBeUndefined()
  })

  test('ends with a logout by the user, but not with a forged one', async () => {
    const browser = new Browser(world)
    await browser.login('alice')
    const cookie = browser.ours.header
    const csrf = (await browser.me())?.csrf as string
    const forged = await browser.get('/auth/logout', 'POST', { origin: 'https://evil.test' })
    expect(forged.statusCode).toBe(403)
    expect(world.audited.at(-1)).toMatchObject({ operation: 'logout', outcome: 'denied' })
    expect(await browser.me()).toBeDefined()
    const headers = { origin: HTTPS, 'x-redrive-csrf': csrf }
    const answer = await browser.get('/auth/logout', 'POST', headers)
    expect(answer.statusCode).toBe(204)
    expect(browser.ours.cookies.has('__Host-redrive')).toBe(false)
    expect(world.audited.at(-1)).toMatchObject({
      operation: 'logout',
      outcome: 'done',
      caller: { person: `${issuer}#alice` },
    })
    const again = await world.app.inject({ url: '/me', headers: { cookie } })
    expect(again.statusCode).toBe(401)
  })

  test('always has the current grants of the config', async () => {
    const other = await worldOf({ pool, issuer })
    const browser = new Browser(other)
    await browser.login('alice')
    expect((await browser.me())?.grants).toHaveLength(1)
    other.access = []
    expect((await browser.me())?.grants).toEqual([])
    other.access = [{ people: ['alice'], roles: ['viewer'], sources: ['*'] }]
    expect((await browser.me())?.grants).toEqual([{ actions: ['view'], sources: ['*'] }])
    other.access = [{ people: ['alic', 'alice2', 'ALICE'], roles: ['admin'], sources: ['*'] }]
    expect((await browser.me())?.grants).toEqual([])
  })

  test('has the groups of the last login', async () => {
    const browser = new Browser(world)
    await browser.login('alice')
    const before = GROUPS['alice'] as string[]
    GROUPS['alice'] = []
    await new Browser(world).login('alice')
    GROUPS['alice'] = before
    expect((await browser.me())?.grants).toEqual([])
  })

  test('of a former provider has no grants', async () => {
    const browser = new Browser(world)
    await browser.login('alice')
    const moved = await worldOf({ pool, issuer: 'https://new.test' })
    const there = new Browser(moved)
    there.ours.take([`__Host-redrive=${browser.ours.cookies.get('__Host-redrive')}`])
    expect((await there.me())?.grants).toEqual([])
  })
})
