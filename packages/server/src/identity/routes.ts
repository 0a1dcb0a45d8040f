import type {} from '@fastify/cookie'
import { PROBLEMS } from '@redrive/api'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Caller } from '../access/caller.ts'
import { ProblemError } from '../access/problem-error.ts'
import { refuseForgery } from '../http/csrf.ts'
import type { LoginDeps, ServerIdentity } from './identity.ts'
import { LOGIN_MS } from './logins.ts'
import { safeReturn } from './public-url.ts'

const LOGIN_PATH = '/auth/login'
const CALLBACK_PATH = '/auth/callback'
const LOGOUT_PATH = '/auth/logout'

type Oidc = NonNullable<LoginDeps['oidc']>

/** Registers login and logout for browsers. The app must have `@fastify/cookie`. */
export async function registerLogin(app: FastifyInstance, identity: ServerIdentity): Promise<void> {
  await app.register(async (scope) => {
    // Users see these errors in the browser, so they are plain text and not JSON.
    scope.setErrorHandler((error, request, reply) => sendErrorText(error, request, reply))
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
  const { returnTo: requested } = request.query as { readonly returnTo?: unknown }
  const returnTo = safeReturn(requested, publicUrl)
  if (oidc === undefined) return reply.redirect(returnTo)
  const { url, pending } = await oidc.provider.begin(callbackUrl(publicUrl).href)
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
  const { person, returnTo } = await verifyCallback(login, oidc, request)
  const { secret, session } = await oidc.sessions.open(person)
  // Written before the secret is sent, so that every usable session is in the audit log.
  await audit({
    caller: login.callerOf(session),
    operation: 'login',
    outcome: 'done',
    facts: {
      address: request.ip,
      request: request.id,
      name: person.name,
      groups: person.groups.slice(0, AUDITED_GROUPS),
    },
  })
  const before = request.cookies[publicUrl.cookies.session]
  if (before !== undefined) await oidc.sessions.close(before)
  setCookie(reply, login, 'session', secret)
  return reply.redirect(returnTo)
}

/** 50 groups in an audit entry, because its size is limited. */
const AUDITED_GROUPS = 50

/**
 * Verifies the callback of the provider. Writes a rejected login to the audit log if it was started here. A callback
 * without a started login is only logged, because any client could otherwise fill the audit log.
 */
async function verifyCallback(
  { audit, publicUrl }: LoginDeps,
  oidc: Oidc,
  request: FastifyRequest,
) {
  const secret = request.cookies[publicUrl.cookies.login]
  const begun = secret === undefined ? undefined : await oidc.logins.take(secret)
  if (begun === undefined) throw notBegun()
  try {
    const callback = callbackUrl(publicUrl)
    callback.search = new URL(request.url, publicUrl.origin).search
    return { person: await oidc.provider.finish(callback, begun), returnTo: begun.returnTo }
  } catch (error) {
    const why = error instanceof ProblemError ? error.message : 'Internal error.'
    const facts = { address: request.ip, request: request.id, why }
    await audit({ caller: undefined, operation: 'login', outcome: 'denied', facts })
    throw error
  }
}

/** Returns the URL to which the provider redirects the browser. */
const callbackUrl = ({ origin, base }: LoginDeps['publicUrl']) =>
  new URL(base + CALLBACK_PATH.slice(1), origin)

const notBegun = () =>
  new ProblemError(
    'forbidden',
    `This login was not started in this browser, was already used, or took longer than ${LOGIN_MS / 60_000} minutes. Start again at ${LOGIN_PATH}.`,
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
    await audit({
      caller,
      operation: 'logout',
      outcome: 'done',
      facts: { address: request.ip, request: request.id },
    })
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
    await audit({ caller, operation: 'logout', outcome: 'denied', facts })
    throw error
  }
}

type CookieOf = keyof LoginDeps['publicUrl']['cookies']

const attributes = ({ publicUrl }: LoginDeps) =>
  ({ path: '/', httpOnly: true, sameSite: 'lax', secure: publicUrl.isHttps }) as const

/** Sets a cookie. Without `maxAge` it ends with the browser; the database limits the duration of a session. */
function setCookie(
  reply: FastifyReply,
  login: LoginDeps,
  which: CookieOf,
  value: string,
  maxAge?: number,
): void {
  const age = maxAge === undefined ? {} : { maxAge }
  reply.setCookie(login.publicUrl.cookies[which], value, { ...attributes(login), ...age })
}

function dropCookie(reply: FastifyReply, login: LoginDeps, which: CookieOf): void {
  reply.clearCookie(login.publicUrl.cookies[which], attributes(login))
}

function sendErrorText(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const { status, detail } = responseOf(error)
  const facts = { err: error, address: request.ip }
  request.log[status < 500 ? 'info' : 'error'](facts, 'login failed')
  const { retryAfterMs } = error as { readonly retryAfterMs?: number }
  if (retryAfterMs !== undefined) reply.header('retry-after', Math.ceil(retryAfterMs / 1_000))
  return reply.status(status).type('text/plain; charset=utf-8').send(`${detail}\n`)
}

function responseOf(error: unknown): { readonly status: number; readonly detail: string } {
  if (error instanceof ProblemError) return { status: PROBLEMS[error.code], detail: error.message }
  const { statusCode } = error as { readonly statusCode?: unknown }
  if (typeof statusCode === 'number' && statusCode < 500) {
    return { status: statusCode, detail: (error as Error).message }
  }
  const detail = 'Login is not possible now. Try again later, or see the server log.'
  return { status: PROBLEMS.unavailable, detail }
}
