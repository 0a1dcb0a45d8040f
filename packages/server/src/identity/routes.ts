import type {} from '@fastify/cookie'
import { PROBLEMS } from '@redrive/api'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Caller } from '../access/caller.ts'
import { Refusal } from '../access/refusal.ts'
import { refuseForgery } from '../http/csrf.ts'
import type { LoginParts, ServerIdentity } from './identity.ts'
import { LOGIN_MS } from './logins.ts'
import { safeReturn } from './public-url.ts'

const LOGIN_PATH = '/auth/login'
const CALLBACK_PATH = '/auth/callback'
const LOGOUT_PATH = '/auth/logout'

type Oidc = NonNullable<LoginParts['oidc']>

/** The way in and out for people with a browser. The app must have `@fastify/cookie`. */
export async function registerLogin(app: FastifyInstance, identity: ServerIdentity): Promise<void> {
  await app.register(async (scope) => {
    // People read these in the address bar's window: a sentence, and not a document for programs.
    scope.setErrorHandler((error, request, reply) => answerText(error, request, reply))
    scope.addHook('onRequest', async (_request, reply) => {
      reply.header('cache-control', 'no-store')
    })
    const hidden = { exposeHeadRoute: false }
    scope.get(LOGIN_PATH, hidden, (request, reply) => begin(identity, request, reply))
    scope.get(CALLBACK_PATH, hidden, (request, reply) => finish(identity, request, reply))
    scope.post(LOGOUT_PATH, hidden, (request, reply) => logout(identity, request, reply))
  })
}

async function begin(
  { login }: ServerIdentity,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const { oidc, publicUrl } = login
  const { returnTo: asked } = request.query as { readonly returnTo?: unknown }
  const returnTo = safeReturn(asked, publicUrl)
  if (oidc === undefined) return reply.redirect(returnTo)
  const { url, pending } = await oidc.provider.begin(new URL(CALLBACK_PATH, publicUrl.origin).href)
  const secret = await oidc.logins.keep({ ...pending, returnTo })
  setCookie(reply, login, 'login', secret, LOGIN_MS / 1_000)
  return reply.redirect(url)
}

async function finish(
  identity: ServerIdentity,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const { login } = identity
  const { oidc, publicUrl, audit } = login
  if (oidc === undefined) return reply.redirect(safeReturn(undefined, publicUrl))
  dropCookie(reply, login, 'login')
  const { person, returnTo } = await vouchedFor(login, oidc, request)
  const { secret, session } = await oidc.sessions.open(person)
  // Written down before the secret is given out: without it, nobody is in.
  await audit({
    caller: login.callerOf(session),
    what: 'login',
    outcome: 'done',
    facts: { address: request.ip, name: person.name, groups: person.groups.slice(0, GROUPS_NOTED) },
  })
  const before = request.cookies[publicUrl.cookies.session]
  if (before !== undefined) await oidc.sessions.close(before)
  setCookie(reply, login, 'session', secret)
  return reply.redirect(returnTo)
}

/** 50 groups say enough about a login; the audit has its limits. */
const GROUPS_NOTED = 50

/**
 * Whoever is not let in is written down as well, when they came here to log in. Who did not is only logged:
 * the audit is never made smaller, so not everybody in the world may add to it.
 */
async function vouchedFor({ audit, publicUrl }: LoginParts, oidc: Oidc, request: FastifyRequest) {
  const secret = request.cookies[publicUrl.cookies.login]
  const begun = secret === undefined ? undefined : await oidc.logins.take(secret)
  if (begun === undefined) throw notBegun()
  try {
    const { search } = new URL(request.url, publicUrl.origin)
    const answer = new URL(CALLBACK_PATH + search, publicUrl.origin)
    return { person: await oidc.provider.finish(answer, begun), returnTo: begun.returnTo }
  } catch (error) {
    const why = error instanceof Refusal ? error.message : 'An error of the server.'
    const facts = { address: request.ip, why }
    await audit({ caller: undefined, what: 'login', outcome: 'denied', facts })
    throw error
  }
}

const notBegun = () =>
  new Refusal(
    'forbidden',
    `This login was not begun in this browser, was finished already, or took longer than ${LOGIN_MS / 60_000} minutes. Start again at ${LOGIN_PATH}.`,
  )

async function logout(
  identity: ServerIdentity,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const { login } = identity
  const { publicUrl, oidc, audit } = login
  const caller = await identity.identify(request)
  const secret = request.cookies[publicUrl.cookies.session]
  if (caller?.via === 'session' && secret !== undefined) {
    await refuseForgedLogout(identity, caller, request)
    await oidc?.sessions.close(secret)
    await audit({ caller, what: 'logout', outcome: 'done', facts: { address: request.ip } })
  }
  dropCookie(reply, login, 'session')
  reply.header('clear-site-data', '"cache", "storage"')
  return reply.status(204).send()
}

async function refuseForgedLogout(
  identity: ServerIdentity,
  caller: Caller,
  request: FastifyRequest,
): Promise<void> {
  const { audit, publicUrl } = identity.login
  try {
    refuseForgery(request, {
      caller,
      csrf: await identity.csrfOf(caller),
      origin: publicUrl.origin,
    })
  } catch (error) {
    const facts = { address: request.ip, why: (error as Error).message }
    await audit({ caller, what: 'logout', outcome: 'denied', facts })
    throw error
  }
}

type CookieOf = keyof LoginParts['publicUrl']['cookies']

const attributes = ({ publicUrl }: LoginParts) =>
  ({ path: '/', httpOnly: true, sameSite: 'lax', secure: publicUrl.isHttps }) as const

/** Without an age it goes with the browser; how long a session lasts is said by the database. */
function setCookie(
  reply: FastifyReply,
  login: LoginParts,
  which: CookieOf,
  value: string,
  maxAge?: number,
): void {
  const age = maxAge === undefined ? {} : { maxAge }
  reply.setCookie(login.publicUrl.cookies[which], value, { ...attributes(login), ...age })
}

function dropCookie(reply: FastifyReply, login: LoginParts, which: CookieOf): void {
  reply.clearCookie(login.publicUrl.cookies[which], attributes(login))
}

function answerText(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const { status, detail } = saidOf(error)
  const facts = { err: error, address: request.ip }
  request.log[status < 500 ? 'info' : 'error'](facts, 'a login did not succeed')
  const { retryAfterMs } = error as { readonly retryAfterMs?: number }
  if (retryAfterMs !== undefined) reply.header('retry-after', Math.ceil(retryAfterMs / 1_000))
  return reply.status(status).type('text/plain; charset=utf-8').send(`${detail}\n`)
}

function saidOf(error: unknown): { readonly status: number; readonly detail: string } {
  if (error instanceof Refusal) return { status: PROBLEMS[error.code], detail: error.message }
  const { statusCode } = error as { readonly statusCode?: unknown }
  if (typeof statusCode === 'number' && statusCode < 500) {
    return { status: statusCode, detail: (error as Error).message }
  }
  const detail = 'The server cannot let anybody in now. Try again in a moment; its log says why.'
  return { status: PROBLEMS.unavailable, detail }
}
