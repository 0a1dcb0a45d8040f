import type { Action } from '@redrive/api'
import type { Drill } from '../../drill.ts'
import { type Asking, asking, isOk, must } from './ask.ts'
import { attack, type Scene } from './attack.ts'
import { bearer, newToken } from './target.ts'

/** A token may a part of what its owner may at that moment, and is worth nothing otherwise. */
export const TOKENS: Drill = attack(
  'tokens',
  'a token does more than it was made for, or more than its owner may, or goes on after its end',
  async (scene) => {
    await wider(scene)
    await narrow(scene)
    await mangled(scene)
    await ended(scene)
  },
)

interface Made {
  readonly id: string
  readonly secret: string
}

const made = async (
  session: Asking,
  actions: readonly Action[] = ['view'],
  sources: readonly string[] = ['orders'],
): Promise<Made> => must<Made>(await newToken(session, { actions, sources }))

async function wider({ target, tries }: Scene): Promise<void> {
  const { asking: alice } = await target.visitor('alice')
  const sources = ['*', 'orders*', '*orders', 'o*', '*r*', '**', 'billing', 'ORDERS', ' orders']
  for (const source of sources) {
    const told = await newToken(alice, { actions: ['view'], sources: [source] })
    tries.note(`a token of alice for '${source}'`, isOk(told))
  }
  const both = await newToken(alice, { actions: ['view'], sources: ['orders', 'billing'] })
  tries.note('a token of alice for orders and billing', isOk(both))
  for (const action of ['approve', 'unmask', 'export', 'configure'] as const) {
    const told = await newToken(alice, { actions: ['view', action], sources: ['orders'] })
    tries.note(`a token of alice that may ${action}`, isOk(told))
  }
  for (const field of ['person', 'grants', 'via', 'id', 'secret', 'expiresAt']) {
    const body = { name: 'drill', days: 1, actions: ['view'], sources: ['orders'], [field]: 'root' }
    const told = await alice('POST', '/api/v1/tokens', { body })
    tries.note(`a token is made with '${field}'`, isOk(told))
  }
}

/** One that only looks tries the rest. */
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
  tries.note('a token that views sees a body', !body.isHidden)
  const ids = { ids: [id] }
  const deeds: readonly (readonly [string, string, object?])[] = [
    ['GET', `/api/v1/dead-letters/${id}/payload`],
    ['GET', '/api/v1/dead-letters/export?after=0'],
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
    const told = await token(method, path, body === undefined ? {} : { body })
    tries.note(`a token that views may ${method} ${path}`, isOk(told))
  }
  const { tokens } = must<{ tokens: readonly Made[] }>(await token('GET', '/api/v1/tokens'))
  tries.note(
    'a token sees other tokens',
    tokens.some((one) => one.id === other.id),
  )
  const { json } = { json: await token('GET', '/api/v1/dead-letters?after=0&json=/order%3D1') }
  tries.note('a token that views asks for values of bodies', isOk(json) && json.text.includes(id))
  const { asking: dave } = await target.visitor('dave')
  tries.note(
    'somebody revokes the token of another',
    isOk(await dave('DELETE', `/api/v1/tokens/${other.id}`)),
  )
}

/** Everything that is not the token as it was given. */
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
    const told = await asking(url, bearer(text))('GET', '/api/v1/me')
    tries.note(`a token ${how} is let in`, isOk(told))
    const both = await asking(url, { ...bearer(text), cookie: visitor.cookie })('GET', '/api/v1/me')
    tries.note(`a token ${how} is made good by a session`, isOk(both))
  }
  const anonymous = asking(url)
  for (const name of ['token', 'access_token', 'authorization', 'api_key']) {
    const told = await anonymous('GET', `/api/v1/me?${name}=${secret}`)
    tries.note(`a token in the address, as ${name}, is let in`, isOk(told))
  }
  const places = {
    cookie: `redrive-loopback=${secret}; token=${secret}`,
    authorization: `Basic ${Buffer.from(`:${secret}`).toString('base64')}`,
    'x-api-key': secret,
    'proxy-authorization': `Bearer ${secret}`,
  }
  for (const [name, value] of Object.entries(places)) {
    const told = await asking(url, { [name]: value })('GET', '/api/v1/me')
    tries.note(`a token in the header ${name} is let in`, isOk(told))
  }
  must(await asking(url, bearer(secret))('GET', '/api/v1/me'))
}

async function ended({ target, tries }: Scene): Promise<void> {
  const { server, pool, openId, queues } = target
  const [id = ''] = await queues.kill(pool, 'orders', [{}])
  openId.accounts.set('mallory', { name: 'mallory', groups: ['crew'] })
  const { asking: session } = await target.visitor('mallory')
  const [revoked, expired, kept] = [await made(session), await made(session), await made(session)]
  const sees = async ({ secret }: Made) =>
    isOk(await asking(server.url, bearer(secret))('GET', `/api/v1/dead-letters/${id}`))
  if (!(await sees(kept))) throw new Error('A token that is good is not let in.')
  must(await session('DELETE', `/api/v1/tokens/${revoked.id}`))
  tries.note('a token is used after it was revoked', await sees(revoked))
  await pool.query(EXPIRE, [expired.id])
  tries.note('a token is used after it expired', await sees(expired))
  openId.accounts.set('mallory', { name: 'mallory', groups: [] })
  await target.visitor('mallory')
  tries.note('a token is used after its owner left the group', await sees(kept))
}

const EXPIRE = `update redrive_server.token set expires_at = now() - interval '1 ms' where id = $1`
