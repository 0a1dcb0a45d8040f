import type { Action } from '@redrive/api/enums'
import type { Scenario } from '../../harness/scenario.ts'
import { becomesTrue } from '../../harness/wait.ts'
import { type Person, asking, isOk, must } from './ask.ts'
import { attack, type Scene } from './attack.ts'
import { planned } from './runs.ts'
import { bearer, newToken } from './target.ts'

/** A token has a part of its owner's current permissions and no others. */
export const TOKENS: Scenario = attack(
  'tokens',
  "a token exceeds its own or its owner's permissions, or still works after its end",
  async (scene) => {
    await wider(scene)
    await narrow(scene)
    await mangled(scene)
    await ended(scene)
    await forgotten(scene)
    await streaming(scene)
  },
)

interface CreatedToken {
  readonly id: string
  readonly secret: string
}

const made = async (
  session: Person,
  actions: readonly Action[] = ['view'],
  sources: readonly string[] = ['orders'],
): Promise<CreatedToken> => must<CreatedToken>(await newToken(session, { actions, sources }))

async function wider({ target, tries }: Scene): Promise<void> {
  const { asking: alice } = await target.visitor('alice')
  const sources = ['*', 'orders*', '*orders', 'o*', '*r*', '**', 'billing', 'ORDERS', ' orders']
  for (const source of sources) {
    const response = await newToken(alice, { actions: ['view'], sources: [source] })
    tries.note(`alice creates a token for '${source}'`, isOk(response))
  }
  const both = await newToken(alice, { actions: ['view'], sources: ['orders', 'billing'] })
  tries.note('alice creates a token for orders and billing', isOk(both))
  for (const action of ['approve', 'view_unmasked', 'export', 'configure'] as const) {
    const response = await newToken(alice, { actions: ['view', action], sources: ['orders'] })
    tries.note(`alice creates a token with the permission ${action}`, isOk(response))
  }
  for (const field of ['person', 'grants', 'via', 'id', 'secret', 'expiresAt']) {
    const body = { name: 'drill', days: 1, actions: ['view'], sources: ['orders'], [field]: 'root' }
    const response = await alice('POST', '/api/v1/tokens', { body })
    tries.note(`a token is created with '${field}'`, isOk(response))
  }
}

/** Tries every other operation with a token that has only the permission to view. */
async function narrow({ target, tries }: Scene): Promise<void> {
  const { pool, queues, server } = target
  const [id = ''] = await queues.kill(pool, 'orders', [{}])
  const { asking: session } = await target.visitor('root')
  const other = await made(session)
  const { secret } = await made(session)
  const token = asking(server.url, bearer(secret))
  const { body } = must<{ body: { isHidden: boolean } }>(
    await token('GET', `/api/v1/dead-letters/${id}`),
  )
  tries.note('a view-only token sees a body', !body.isHidden)
  const ids = { ids: [id] }
  const deeds: readonly (readonly [string, string, object?])[] = [
    ['GET', `/api/v1/dead-letters/${id}/payload?reason=test`],
    ['GET', '/api/v1/tokens?everyone=true'],
    ['GET', '/api/v1/sessions'],
    ['GET', '/api/v1/dead-letters/export?filter=after:0'],
    ['GET', '/api/v1/audit'],
    ['GET', '/metrics'],
    ['POST', '/api/v1/dead-letters/discard', ids],
    ['POST', '/api/v1/replays', { selection: ids }],
    ['POST', `/api/v1/dead-letters/${id}/comments`, { text: 'hello' }],
    ['PUT', '/api/v1/sources/orders/schema', { schema: {} }],
    ['PUT', '/api/v1/sources/orders/auto-replay', { allowed: true }],
    ['POST', '/api/v1/replays/acknowledge-restore'],
    ['DELETE', `/api/v1/tokens/${other.id}`],
    ['POST', '/api/v1/tokens', { name: 'x', days: 1, actions: ['view'], sources: ['orders'] }],
  ]
  for (const [method, path, body] of deeds) {
    const response = await token(method, path, body === undefined ? {} : { body })
    tries.note(`a view-only token can ${method} ${path}`, isOk(response))
  }
  const { tokens } = must<{ tokens: readonly CreatedToken[] }>(await token('GET', '/api/v1/tokens'))
  tries.note(
    'a token lists other tokens',
    tokens.some((one) => one.id === other.id),
  )
  const { json } = {
    json: await token('GET', '/api/v1/dead-letters?filter=after:0%20json:/order%3D1'),
  }
  tries.note('a view-only token filters by values of bodies', isOk(json) && json.text.includes(id))
  const { asking: dave } = await target.visitor('dave')
  tries.note(
    'a user revokes the token of another user',
    isOk(await dave('DELETE', `/api/v1/tokens/${other.id}`)),
  )
}

/** Tries every value that differs from the issued token. */
async function mangled({ target, tries }: Scene): Promise<void> {
  const { url } = target.server
  const { visitor, asking: session } = await target.visitor('alice')
  const [one, two] = [await made(session), await made(session)]
  const { secret } = one
  const [, id = '', key = ''] = /^rdv_(\w{32})_(.*)$/.exec(secret) ?? []
  const otherKey = two.secret.slice(-key.length)
  const cookie = visitor.cookie.split('=')[1] ?? ''
  const texts = {
    'without its end': secret.slice(0, -1),
    'with more at its end': `${secret}A`,
    twice: `${secret}${secret}`,
    'two with a comma': `${secret}, ${two.secret}`,
    'with the secret of another': `rdv_${id}_${otherKey}`,
    'without a secret': `rdv_${id}_`,
    'with a secret of zeros': `rdv_${id}_${'A'.repeat(key.length)}`,
    'in upper case': secret.toUpperCase(),
    'in another prefix': secret.replace('rdv_', 'xyz_'),
    'with a space in it': secret.replace('_', '_ '),
    'as the session': cookie,
    'as SQL': `rdv_${id}_' or true --`,
  }
  for (const [how, text] of Object.entries(texts)) {
    const response = await asking(url, bearer(text))('GET', '/api/v1/me')
    tries.note(`a token ${how} is accepted`, isOk(response))
    const both = await asking(url, { ...bearer(text), cookie: visitor.cookie })('GET', '/api/v1/me')
    tries.note(`a token ${how} is accepted because of a session`, isOk(both))
  }
  const anonymous = asking(url)
  for (const name of ['token', 'access_token', 'authorization', 'api_key']) {
    const response = await anonymous('GET', `/api/v1/me?${name}=${secret}`)
    tries.note(`a token in the address, as ${name}, is accepted`, isOk(response))
  }
  const places = {
    cookie: `redrive-loopback=${secret}; token=${secret}`,
    authorization: `Basic ${Buffer.from(`:${secret}`).toString('base64')}`,
    'x-api-key': secret,
    'proxy-authorization': `Bearer ${secret}`,
  }
  for (const [name, value] of Object.entries(places)) {
    const response = await asking(url, { [name]: value })('GET', '/api/v1/me')
    tries.note(`a token in the header ${name} is accepted`, isOk(response))
  }
  must(await asking(url, bearer(secret))('GET', '/api/v1/me'))
}

async function ended({ target, tries }: Scene): Promise<void> {
  const { server, pool, openId, queues } = target
  const [id = ''] = await queues.kill(pool, 'orders', [{}])
  openId.accounts.set('mallory', { name: 'mallory', groups: ['crew'] })
  const { asking: session } = await target.visitor('mallory')
  const [revoked, expired, kept] = [await made(session), await made(session), await made(session)]
  const sees = async ({ secret }: CreatedToken) =>
    isOk(await asking(server.url, bearer(secret))('GET', `/api/v1/dead-letters/${id}`))
  if (!(await sees(kept))) throw new Error('A valid token is rejected.')
  must(await session('DELETE', `/api/v1/tokens/${revoked.id}`))
  tries.note('a token is used after it was revoked', await sees(revoked))
  await pool.query(EXPIRE, [expired.id])
  tries.note('a token is used after it expired', await sees(expired))
  openId.accounts.set('mallory', { name: 'mallory', groups: [] })
  await target.visitor('mallory')
  tries.note('a token is used after its owner left the group', await sees(kept))
}

/** The owner leaves and never signs in again, so the server has only the groups of the last sign-in. */
async function forgotten({ target, tries }: Scene): Promise<void> {
  const { server, pool, openId, queues } = target
  const [id = ''] = await queues.kill(pool, 'orders', [{}])
  openId.accounts.set('leaver', { name: 'leaver', groups: ['crew'] })
  const { asking: session } = await target.visitor('leaver')
  const token = asking(server.url, bearer((await made(session)).secret))
  const path = `/api/v1/dead-letters/${id}`
  must(await token('GET', path))
  must(await session('GET', path))
  openId.accounts.set('leaver', { name: 'leaver', groups: [] })
  await pool.query(A_DAY_AGO)
  tries.note('a token is used a day after its owner left', isOk(await token('GET', path)))
  tries.note('a session is used a day after its user left', isOk(await session('GET', path)))
}

const A_DAY_AGO = `update redrive_server.person set logged_in_at = now() - interval '25 hours'
  where name = 'leaver'`

/** 10 s: the stated time in which a stream ends. */
const STREAM_END_MS = 10_000

/** A stream that was opened before its token was revoked. */
async function streaming({ target, tries }: Scene): Promise<void> {
  const { server, as, pool, queues } = target
  const ids = await queues.kill(pool, 'orders', [{}])
  const run = await planned(as.alice, { ids })
  const { asking: session } = await target.visitor('alice')
  const { id, secret } = await made(session)
  const stream = await fetch(`${server.url}/api/v1/replays/${run.id}/events`, {
    headers: bearer(secret),
  })
  if (stream.status !== 200) throw new Error(`The stream did not start: ${stream.status}`)
  let isOpen = true
  const end = () => {
    isOpen = false
  }
  void new Response(stream.body).text().then(end, end)
  must(await session('DELETE', `/api/v1/tokens/${id}`))
  await becomesTrue(() => !isOpen, { withinMs: STREAM_END_MS })
  tries.note('a stream stays open 10 s after its token was revoked', isOpen)
  must(await as.root('POST', `/api/v1/replays/${run.id}/cancel`))
}

const EXPIRE = `update redrive_server.token set expires_at = now() - interval '1 ms' where id = $1`
