import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import cookie from '@fastify/cookie'
import Fastify, { type FastifyInstance, type FastifyServerOptions } from 'fastify'
import { Provider } from 'oidc-provider'
import type { Pool } from 'pg'
import { afterAll } from 'vitest'
import type { NewEntry } from '../src/audit/entry.ts'
import { ProblemError } from '../src/access/problem-error.ts'
import { refuseForgery } from '../src/http/csrf.ts'
import type { Binding } from '../src/identity/grants.ts'
import {
  createIdentity,
  type IdentityOptions,
  type ServerIdentity,
} from '../src/identity/identity.ts'
import { registerLogin } from '../src/identity/routes.ts'

export const CLIENT = { id: 'redrive', secret: 'a secret of the client' }
export const HTTPS = 'https://redrive.test'

export async function listening(listener: RequestListener): Promise<Server> {
  const server = createServer(listener)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  afterAll(() => {
    server.closeAllConnections()
    server.close()
  })
  return server
}

export const portOf = (server: { address(): unknown }) => (server.address() as AddressInfo).port

/** Groups by user. The provider accepts every user with any password. */
export const GROUPS: Record<string, string[]> = {
  alice: ['operators', 'staff'],
  bob: ['viewers'],
}

/** Starts a real OpenID provider on this machine. Like many providers, it returns groups only in userinfo. */
export async function openIdProvider(redirectUris: readonly string[], host = '127.0.0.1') {
  let handle: RequestListener = () => undefined
  const server = await listening((request, response) => handle(request, response))
  const issuer = `http://${host}:${portOf(server)}`
  const provider = new Provider(issuer, {
    clients: [
      { client_id: CLIENT.id, client_secret: CLIENT.secret, redirect_uris: [...redirectUris] },
    ],
    claims: { openid: ['sub'], profile: ['name', 'groups'], email: ['email'] },
    findAccount: (_: unknown, id: string) => ({
      accountId: id,
      claims: () => ({ sub: id, name: `${id} of Example`, groups: GROUPS[id] ?? [] }),
    }),
    pkce: { required: () => true },
    cookies: { keys: ['a key of the test'] },
  })
  handle = provider.callback()
  return issuer
}

export interface World {
  readonly app: FastifyInstance
  readonly identity: ServerIdentity
  /** Bindings; tests can change them while the server runs. */
  access: readonly Binding[]
  readonly audited: NewEntry[]
}

export interface WorldOptions {
  readonly pool: Pool
  readonly issuer: string
  readonly publicUrl?: string
  readonly oidc?: Partial<NonNullable<IdentityOptions['auth']['oidc']>>
  readonly auth?: IdentityOptions['auth']
  readonly server?: FastifyServerOptions & { https?: { key: string; cert: string } }
}

const OPERATORS: readonly Binding[] = [
  { groups: ['operators'], roles: ['operator'], sources: ['orders*'] },
]

/** Creates a server with a login, a route that returns the caller and a route that changes data. */
export async function worldOf(options: WorldOptions): Promise<World> {
  const { pool, issuer, publicUrl = HTTPS } = options
  const audited: NewEntry[] = []
  const auth = options.auth ?? { oidc: { ...oidcOf(issuer), ...options.oidc } }
  const world = { access: OPERATORS, audited }
  const identity = createIdentity({
    pool,
    publicUrl,
    auth,
    access: () => world.access,
    audit: async (entry) => audited.push(entry),
  })
  const app = Fastify(options.server ?? {}) as unknown as FastifyInstance
  afterAll(() => app.close())
  await app.register(cookie)
  await registerLogin(app, identity)
  app.setErrorHandler((error, _request, reply) => {
    const { statusCode = 500, message } = error as Error & { statusCode?: number }
    return reply.status(error instanceof ProblemError ? 403 : statusCode).send({ detail: message })
  })
  app.get('/', async () => 'home')
  app.get('/groups', async () => 'groups')
  app.get('/me', async (request, reply) => {
    const caller = await identity.identify(request)
    if (caller === undefined) return reply.status(401).send()
    return { ...caller, csrf: await identity.csrfOf(caller) }
  })
  app.post('/change', async (request, reply) => {
    const caller = await identity.identify(request)
    if (caller === undefined) return reply.status(401).send()
    const { origin } = new URL(publicUrl)
    refuseForgery(request, { caller, csrf: await identity.csrfOf(caller), origin })
    return reply.status(204).send()
  })
  return Object.assign(world, { app, identity })
}

export const oidcOf = (issuer: string) => ({
  issuer,
  clientId: CLIENT.id,
  clientSecret: CLIENT.secret,
  scopes: ['openid', 'profile'],
  groupsClaim: 'groups',
  nameClaim: 'name',
  sessionIdleMs: 1_800_000,
  sessionMaxAgeMs: 43_200_000,
  groupsMaxAgeMs: 86_400_000,
})

/** Cookies of one browser at one server. */
class Jar {
  readonly cookies = new Map<string, string>()

  get header(): string {
    return [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
  }

  take(setCookies: readonly string[]): void {
    for (const line of setCookies) {
      const [pair = '', ...attributes] = line.split(';').map((part) => part.trim())
      const [name = '', value = ''] = pair.split(/=(.*)/s)
      const isGone = value === '' || attributes.some((one) => /^max-age=0$/i.test(one))
      if (isGone) this.cookies.delete(name)
      else this.cookies.set(name, value)
    }
  }
}

/** A simulated browser that keeps cookies and follows redirects. */
export class Browser {
  readonly ours = new Jar()
  readonly theirs = new Jar()
  readonly #app: FastifyInstance
  readonly #publicUrl: string

  constructor({ app }: World, publicUrl = HTTPS) {
    this.#app = app
    this.#publicUrl = publicUrl
  }

  async get(path: string, method: 'GET' | 'POST' = 'GET', headers: Record<string, string> = {}) {
    const cookies = this.ours.header
    const answer = await this.#app.inject({
      method,
      url: path,
      headers: { ...(cookies === '' ? {} : { cookie: cookies }), ...headers },
    })
    this.ours.take([answer.headers['set-cookie'] ?? []].flat())
    return answer
  }

  async me(): Promise<
    { person: string; name: string; csrf?: string; grants: unknown } | undefined
  > {
    const answer = await this.get('/me')
    return answer.statusCode === 401 ? undefined : answer.json()
  }

  /** Starts a login and returns the URL of the provider. */
  async begin(returnTo = '/groups'): Promise<string> {
    const answer = await this.get(`/auth/login?returnTo=${encodeURIComponent(returnTo)}`)
    if (answer.statusCode !== 302) throw new Error(`${answer.statusCode}: ${answer.body}`)
    return answer.headers.location as string
  }

  /** Logs in at the provider and returns the path of the callback. */
  async atProvider(address: string, login: string): Promise<string> {
    let next: { url: string; form?: URLSearchParams } = { url: address }
    // 20 steps are twice as many as a login with consent needs.
    for (let step = 0; step < 20; step++) {
      const answer = await this.#ask(next)
      const location = answer.headers.get('location')
      const text = await answer.text()
      if (location === null) next = filled(text, login)
      else next = { url: new URL(location, next.url).href }
      if (next.url.startsWith(this.#publicUrl)) return next.url.slice(this.#publicUrl.length)
    }
    throw new Error('The provider did not redirect to the callback within 20 steps.')
  }

  async #ask({ url, form }: { url: string; form?: URLSearchParams }): Promise<Response> {
    const answer = await fetch(url, {
      redirect: 'manual',
      headers: { cookie: this.theirs.header },
      ...(form === undefined ? {} : { method: 'POST', body: form }),
    })
    this.theirs.take(answer.headers.getSetCookie())
    return answer
  }

  /** Runs the whole login and returns the response of the callback. */
  async login(who: string, returnTo?: string) {
    return this.get(await this.atProvider(await this.begin(returnTo), who))
  }
}

function filled(page: string, login: string): { url: string; form: URLSearchParams } {
  const url = /<form[^>]* action="([^"]+)"/.exec(page)?.[1]
  const prompt = /name="prompt" value="(\w+)"/.exec(page)?.[1]
  if (url === undefined || prompt === undefined) throw new Error(`The page has no form: ${page}`)
  return { url, form: new URLSearchParams({ prompt, login, password: 'any' }) }
}
