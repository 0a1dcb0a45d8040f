import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import { allows } from '../src/access/allow.ts'
import type { Caller, Grant } from '../src/access/caller.ts'
import { createIdentity, type ServerIdentity } from '../src/identity/identity.ts'
import { type Binding, meet } from '../src/identity/grants.ts'
import { issueToken } from '../src/identity/issue.ts'
import type { NewEntry } from '../src/audit/entry.ts'
import type { TokenRequest } from '../src/identity/port.ts'
import { rejection, serverDatabase } from './database-stage.ts'
import { HTTPS, oidcOf } from './identity-stage.ts'

const pool = await serverDatabase('redrive_server_tokens')
const ISSUER = 'https://idp.test'

let access: readonly Binding[]
let identity: ServerIdentity

beforeAll(() => {
  identity = createIdentity({
    pool,
    publicUrl: HTTPS,
    auth: { oidc: oidcOf(ISSUER) },
    access: () => access,
    audit: async () => 1,
  })
})

const bearer = (text: string) => ({ headers: { authorization: `Bearer ${text}` }, cookies: {} })

/** Returns a caller with a new session. */
async function loggedIn(groups: readonly string[] = ['operators']): Promise<Caller> {
  access = [{ groups: ['operators'], roles: ['operator'], sources: ['orders*'] }]
  const id = `${ISSUER}#${randomUUID()}`
  const { oidc } = identity.login
  const opened = await oidc?.sessions.open({ id, name: 'Alice', groups })
  const cookies = { '__Host-redrive': opened?.secret }
  return (await identity.identify({ headers: {}, cookies })) as Caller
}

const REQUEST: TokenRequest = {
  name: 'deploys',
  actions: ['view', 'replay'],
  sources: ['orders*'],
  days: 30,
}
const createToken = (caller: Caller, request: Partial<TokenRequest> = {}) =>
  identity.tokens.create(caller, { ...REQUEST, ...request })

describe('a token', () => {
  test('identifies its owner and has only the requested permissions', async () => {
    const owner = await loggedIn()
    const { secret, id } = await createToken(owner)
    expect(secret).toMatch(/^rdv_[0-9a-f]{32}_[\w-]{43}$/)
    const caller = (await identity.identify(bearer(secret))) as Caller
    expect(caller).toMatchObject({ person: owner.person, via: 'token', credential: id })
    expect(allows(caller, 'replay', 'orders.eu')).toBe(true)
    expect(allows(caller, 'discard', 'orders.eu')).toBe(false)
    expect(allows(caller, 'view', 'payments')).toBe(false)
    expect(await identity.csrfOf(caller)).toBeUndefined()
  })

  test('is stored as a hash and returned once', async () => {
    const owner = await loggedIn()
    const { secret } = await createToken(owner)
    const { rows } = await pool.query<{ text: string }>(
      'select token::text as text from redrive_server.token where person_id = $1',
      [owner.person],
    )
    expect(rows[0]?.text).not.toContain(secret.slice(-43))
    expect(JSON.stringify(await identity.tokens.list(owner))).not.toContain(secret.slice(-43))
  })

  test('is rejected with every permission that its creator lacks', async () => {
    const owner = await loggedIn()
    const error = await rejection(
      createToken(owner, {
        actions: ['view', 'view_unmasked', 'approve'],
        sources: ['orders*', '*'],
      }),
    )
    expect(error).toMatchObject({ code: 'invalid' })
    expect((error as unknown as { problems: string[] }).problems).toEqual([
      'You do not have permission "view" on source "*".',
      'You do not have permission "view_unmasked" on source "orders*".',
      'You do not have permission "view_unmasked" on source "*".',
      'You do not have permission "approve" on source "orders*".',
      'You do not have permission "approve" on source "*".',
    ])
  })

  test.for(['*', 'order*', '*orders*', 'o*rders*', '**', 'payments'])(
    'for %s cannot be created by a user with permissions on orders*',
    async (source) => {
      const error = await rejection(createToken(await loggedIn(), { sources: [source] }))
      expect(error).toMatchObject({ code: 'invalid' })
    },
  )

  test.for(['orders*', 'orders', 'orders.*', 'orders*eu', 'orders**'])(
    'for %s can be created by a user with permissions on orders*',
    async (source) => {
      const { secret } = await createToken(await loggedIn(), { sources: [source] })
      const caller = (await identity.identify(bearer(secret))) as Caller
      expect(allows(caller, 'view', 'payments')).toBe(false)
      expect(allows(caller, 'view', source.replaceAll('*', '.x.'))).toBe(true)
    },
  )

  test('cannot create tokens, or list or revoke other tokens of its owner', async () => {
    const owner = await loggedIn()
    const { secret, id } = await createToken(owner)
    const other = await createToken(owner, { name: 'other' })
    const caller = (await identity.identify(bearer(secret))) as Caller
    expect(await rejection(createToken(caller))).toMatchObject({ code: 'forbidden' })
    expect((await identity.tokens.list(caller)).map((token) => token.id)).toEqual([id])
    expect(await identity.tokens.revoke(caller, other.id)).toBe(false)
    expect(await identity.identify(bearer(other.secret))).toBeDefined()
    expect(await identity.tokens.revoke(caller, id)).toBe(true)
    expect(await identity.identify(bearer(secret))).toBeUndefined()
  })

  test('immediately loses permissions that its owner loses', async () => {
    const owner = await loggedIn()
    const { secret } = await createToken(owner)
    const now = async () => (await identity.identify(bearer(secret))) as Caller
    expect(allows(await now(), 'replay', 'orders.eu')).toBe(true)
    access = [{ groups: ['operators'], roles: ['viewer'], sources: ['orders.eu'] }]
    expect((await now()).grants).toEqual([{ actions: ['view'], sources: ['orders.eu'] }])
    access = []
    expect(await now()).toBeUndefined()
  })

  test('loses permissions that its owner lost at the last login', async () => {
    const owner = await loggedIn()
    const { secret } = await createToken(owner)
    await identity.login.oidc?.sessions.open({ id: owner.person, name: 'Alice', groups: [] })
    expect(await identity.identify(bearer(secret))).toBeUndefined()
  })

  test('ends with the session when the groups of its owner are older than their maximum age', async () => {
    const owner = await loggedIn()
    const { secret } = await createToken(owner)
    const opened = await identity.login.oidc?.sessions.open({
      id: owner.person,
      name: 'Alice',
      groups: ['operators'],
    })
    const session = { headers: {}, cookies: { '__Host-redrive': opened?.secret } }
    const age = (hours: number) =>
      pool.query(
        `update redrive_server.person set logged_in_at = now() - $2 * interval '1 h' where id = $1`,
        [owner.person, hours],
      )
    await age(23.9)
    expect(await identity.identify(bearer(secret))).toBeDefined()
    expect(await identity.identify(session)).toBeDefined()
    await age(24.1)
    expect(await identity.identify(bearer(secret))).toBeUndefined()
    expect(await identity.identify(session)).toBeUndefined()
    // A user who is named in the config does not need groups.
    const subject = owner.person.slice(ISSUER.length + 1)
    access = [{ people: [subject], roles: ['viewer'], sources: ['orders'] }]
    expect((await identity.identify(bearer(secret)))?.grants).toEqual([
      { actions: ['view'], sources: ['orders'] },
    ])
  })

  test('and a session of any user can be listed and revoked without their owner', async () => {
    const owner = await loggedIn()
    const { secret, id } = await createToken(owner)
    const all = await identity.tokens.listAll()
    expect(all.find((token) => token.id === id)).toMatchObject({ person: owner.person })
    expect(await identity.tokens.revokeAny(id)).toBe(true)
    expect(await identity.tokens.revokeAny(id)).toBe(false)
    expect(await identity.identify(bearer(secret))).toBeUndefined()
    const sessions = await identity.sessions.list()
    const session = sessions.find(({ person }) => person === owner.person)
    expect(session).toMatchObject({ id: owner.credential, name: 'Alice' })
    expect(await identity.sessions.revoke(session?.id ?? '')).toBe(true)
    expect(await identity.sessions.revoke(session?.id ?? '')).toBe(false)
    expect(await identity.sessions.list()).not.toContainEqual(session)
  })

  test('of a person cannot approve in a request that says it comes from an agent', async () => {
    access = [{ groups: ['operators'], roles: ['admin'], sources: ['*'] }]
    const owner = await loggedIn()
    access = [{ groups: ['operators'], roles: ['admin'], sources: ['*'] }]
    const admin = { ...owner, grants: [{ actions: ['approve' as const], sources: ['*'] }] }
    const { secret } = await createToken(admin, { actions: ['approve'], sources: ['*'] })
    const person = (await identity.identify(bearer(secret))) as Caller
    expect(allows(person, 'approve', 'orders')).toBe(true)
    const { headers, cookies } = bearer(secret)
    const agent = await identity.identify({
      headers: { ...headers, 'x-redrive-agent': 'true' },
      cookies,
    })
    expect(agent).toEqual({ ...person, isAgent: true })
    expect(allows(agent as Caller, 'approve', 'orders')).toBe(false)
  })

  test('does not gain permissions that its owner gains', async () => {
    const owner = await loggedIn()
    const { secret } = await createToken(owner)
    access = [{ groups: ['operators'], roles: ['admin'], sources: ['*'] }]
    const caller = (await identity.identify(bearer(secret))) as Caller
    expect(caller.grants).toEqual([{ actions: ['view', 'replay'], sources: ['orders*'] }])
  })

  test('is rejected when it is expired, revoked, unknown, changed or malformed', async () => {
    const owner = await loggedIn()
    const revoked = await createToken(owner)
    expect(await identity.tokens.revoke(owner, revoked.id)).toBe(true)
    const { secret } = await createToken(owner)
    const other = await createToken(owner)
    // Created last, because creating a token deletes expired ones.
    const expired = await createToken(owner)
    await pool.query(
      `update redrive_server.token set expires_at = now() - interval '1 s' where id = $1`,
      [expired.id],
    )
    const texts = [
      expired.secret,
      revoked.secret,
      `rdv_${'0'.repeat(32)}_${secret.slice(-43)}`,
      other.secret.slice(0, 37) + secret.slice(-43),
      secret.slice(0, -1) + (secret.endsWith('A') ? 'B' : 'A'),
      secret.slice(0, -1),
      `${secret}A`,
      secret.toUpperCase(),
      '',
      'rdv_',
      `rdv_${'0'.repeat(32)}_${'A'.repeat(43)}`,
    ]
    for (const text of texts) expect(await identity.identify(bearer(text))).toBeUndefined()
    expect(await identity.identify(bearer(secret))).toBeDefined()
  })

  test('is rejected when it is wrong, even with a valid session', async () => {
    const owner = await loggedIn()
    const { oidc } = identity.login
    const person = { id: owner.person, name: 'Alice', groups: ['operators'] }
    const opened = await oidc?.sessions.open(person)
    const cookies = { '__Host-redrive': opened?.secret }
    expect(await identity.identify({ headers: {}, cookies })).toBeDefined()
    const both = { headers: { authorization: 'Bearer rdv_wrong' }, cookies }
    expect(await identity.identify(both)).toBeUndefined()
    const { secret } = await createToken(owner)
    const right = { headers: { authorization: `Bearer ${secret}` }, cookies }
    expect((await identity.identify(right))?.via).toBe('token')
  })

  test('of another user cannot be listed or revoked', async () => {
    const alice = await loggedIn()
    const { id } = await createToken(alice)
    const mallory = await loggedIn()
    expect(await identity.tokens.list(mallory)).toEqual([])
    expect(await identity.tokens.revoke(mallory, id)).toBe(false)
    expect(await identity.tokens.list(alice)).toHaveLength(1)
  })

  test('and a session are not used by a passive check, so that a session can become idle', async () => {
    const owner = await loggedIn()
    const { secret } = await createToken(owner)
    await identity.identify({ ...bearer(secret), isPassive: true })
    expect((await identity.tokens.list(owner))[0]?.lastUsedAt).toBeUndefined()
    const person = { id: owner.person, name: 'Alice', groups: ['operators'] }
    const opened = await identity.login.oidc?.sessions.open(person)
    const session = { headers: {}, cookies: { '__Host-redrive': opened?.secret } }
    const seenAt = async () => {
      const { rows } = await pool.query<{ seen_at: Date }>(
        'select seen_at from redrive_server.session where id = $1',
        [opened?.session.id],
      )
      return rows[0]?.seen_at.getTime()
    }
    await pool.query(
      `update redrive_server.session set seen_at = seen_at - interval '61 s' where id = $1`,
      [opened?.session.id],
    )
    const before = await seenAt()
    expect(await identity.identify({ ...session, isPassive: true })).toBeDefined()
    expect(await seenAt()).toBe(before)
    expect(await identity.identify(session)).toBeDefined()
    expect(await seenAt()).toBeGreaterThan(before as number)
  })

  test('updates its last use at most once a minute', async () => {
    const owner = await loggedIn()
    const { secret, id } = await createToken(owner)
    const usedAt = async () => (await identity.tokens.list(owner))[0]?.lastUsedAt
    expect(await usedAt()).toBeUndefined()
    await identity.identify(bearer(secret))
    const first = await usedAt()
    expect(first).toBeDefined()
    await identity.identify(bearer(secret))
    expect(await usedAt()).toBe(first)
    await pool.query(
      `update redrive_server.token set last_used_at = last_used_at - interval '61 s' where id = $1`,
      [id],
    )
    await identity.identify(bearer(secret))
    expect(await usedAt()).toBeGreaterThanOrEqual(first as number)
  })

  test('of an agent is marked and cannot approve', async () => {
    access = [{ groups: ['operators'], roles: ['admin'], sources: ['*'] }]
    const owner = {
      ...(await loggedIn()),
      grants: [{ actions: ['view', 'approve'], sources: ['*'] }],
    }
    access = [{ groups: ['operators'], roles: ['admin'], sources: ['*'] }]
    const { secret } = await createToken(owner as Caller, {
      isAgent: true,
      actions: ['view', 'approve'],
      sources: ['*'],
    })
    const caller = (await identity.identify(bearer(secret))) as Caller
    expect(caller.isAgent).toBe(true)
    expect(allows(caller, 'approve', 'orders')).toBe(false)
  })

  test('is rejected when its owner has 100 tokens', async () => {
    const owner = await loggedIn()
    await Promise.all(Array.from({ length: 100 }, () => createToken(owner)))
    expect(await rejection(createToken(owner))).toMatchObject({ code: 'conflict' })
    await pool.query(
      `update redrive_server.token set expires_at = now() - interval '1 s' where person_id = $1`,
      [owner.person],
    )
    await createToken(owner)
    expect(await identity.tokens.list(owner)).toHaveLength(1)
  })
})

test('meet never allows more than either grant', () => {
  const patterns = ['*', 'a*', '*b', 'a*b', 'ab', 'a', 'b', 'a**b', 'a*a*', '*a*']
  const names = ['', 'a', 'b', 'ab', 'aab', 'aba', 'ba', 'a*b', 'axb', 'axa', 'c']
  const grant = (source: string): Grant => ({ actions: ['view'], sources: [source] })
  const may = (grants: readonly Grant[], name: string) =>
    allows({ grants, isAgent: false } as unknown as Caller, 'view', name)
  const tooMuch = patterns.flatMap((one) =>
    patterns.flatMap((other) =>
      names
        .filter((name) => may(meet([grant(one)], grant(other)), name))
        .filter((name) => !may([grant(one)], name) || !may([grant(other)], name))
        .map((name) => `${one} and ${other} let ${name} through`),
    ),
  )
  expect(tooMuch).toEqual([])
})

describe('in development mode', () => {
  const development = () =>
    createIdentity({
      pool,
      publicUrl: 'http://127.0.0.1:8080',
      auth: { development: { name: 'developer', roles: ['admin'] } },
      access: () => [],
      audit: async () => 1,
    })
  const at = (host: string | undefined) =>
    development().identify({ headers: { host }, cookies: {} })

  test.for(['127.0.0.1:8080', 'localhost:8080', '[::1]:8080', 'localhost'])(
    'every request to the host %s is from the developer',
    async (host) => {
      const caller = (await at(host)) as Caller
      expect(caller).toMatchObject({ person: 'development', via: 'development' })
      expect(allows(caller, 'configure', 'orders')).toBe(true)
    },
  )

  test.for([
    'evil.test:8080',
    '127.0.0.1.evil.test',
    'evil.test@127.0.0.1',
    '',
    undefined,
    '10.0.0.1',
  ])('a request to the host %s has no caller (DNS rebinding)', async (host) => {
    expect(await at(host)).toBeUndefined()
  })

  test('a token has permissions only in development mode', async () => {
    const caller = (await at('localhost')) as Caller
    const { secret } = await createToken(caller, { sources: ['*'] })
    expect((await development().identify(bearer(secret)))?.grants).toHaveLength(1)
    expect(await identity.identify(bearer(secret))).toBeUndefined()
    expect(await development().identify(bearer('rdv_wrong'))).toBeUndefined()
    const theirs = await createToken(await loggedIn())
    expect(await development().identify(bearer(theirs.secret))).toBeUndefined()
  })
})

describe('issueToken', () => {
  const written: NewEntry[] = []
  const issue = (subject: string, request: Partial<TokenRequest> = {}) =>
    issueToken({
      pool,
      audit: async (entry) => written.push(entry),
      identity,
      issuer: ISSUER,
      subject,
      request: { ...REQUEST, ...request },
    })

  test('creates an audited token with the permissions of the user', async () => {
    access = [{ people: ['robot'], roles: ['operator'], sources: ['orders*'] }]
    written.length = 0
    const { secret, id, person } = await issue('robot')
    expect(person).toBe(`${ISSUER}#robot`)
    const caller = (await identity.identify(bearer(secret))) as Caller
    expect(allows(caller, 'replay', 'orders.eu')).toBe(true)
    expect(allows(caller, 'discard', 'orders.eu')).toBe(false)
    expect(written).toMatchObject([
      {
        via: 'config',
        operation: 'createToken',
        outcome: 'requested',
        facts: { by: 'administrator with the config' },
      },
      { outcome: 'done', subject: id },
    ])
  })

  test('uses the groups of a user who has logged in', async () => {
    const { person } = await loggedIn()
    const issued = await issue(person.slice(ISSUER.length + 1))
    expect(issued.person).toBe(person)
  })

  test('rejects permissions that the user lacks, and audits the attempt', async () => {
    access = [{ people: ['robot'], roles: ['viewer'], sources: ['orders*'] }]
    written.length = 0
    const error = await rejection(issue('robot'))
    expect(error.message).toContain('You do not have permission "replay" on source "orders*".')
    expect(written.map(({ outcome }) => outcome)).toEqual(['requested', 'refused'])
  })

  test.each<[Partial<TokenRequest>, string]>([
    [{ days: 100_000 }, 'days'],
    [{ days: 0 }, 'days'],
    [{ name: '' }, 'name'],
    [{ actions: [] }, 'actions'],
    [{ sources: ['x'.repeat(501)] }, 'sources.0'],
  ])('rejects a request that the API would reject: %o', async (request, where) => {
    access = [{ people: ['robot'], roles: ['operator'], sources: ['*'] }]
    written.length = 0
    const error = await rejection(issue('robot', request))
    expect(error).toMatchObject({ code: 'POLICY_INVALID' })
    expect(error.message).toMatch(
      new RegExp(`^The request for a token is not valid:\\n- ${where}: `),
    )
    expect(written).toEqual([])
  })

  test('rejects a user without permissions', async () => {
    access = []
    expect((await rejection(issue('stranger'))).message).toContain(
      'Add the user to "people" in access',
    )
  })
})
