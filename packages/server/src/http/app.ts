import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import cookie from '@fastify/cookie'
import type { Operation } from '@redrive/api'
import { type Route, ROUTES } from '@redrive/api/internal'
import fastify, { type FastifyBaseLogger, type FastifyInstance, type FastifyRequest } from 'fastify'
import type { Pool } from 'pg'
import { ProblemError } from '../access/problem-error.ts'
import type { Operations } from '../operations/operations.ts'
import type { Identity } from '../identity/port.ts'
import { basePathOf, publicUrlOf, withoutBase } from '../identity/public-url.ts'
import { createRetryingWriter } from '../retry-write.ts'
import { noSuchRoute, registerApi } from './api.ts'
import { keepCaller, knownCaller } from './caller.ts'
import { closeQuietOnes } from './connections.ts'
import { refuseForgery } from './csrf.ts'
import { addSecurityHeaders } from './headers.ts'
import { Idempotency } from './idempotency.ts'
import { takeJsonOnly } from './json.ts'
import {
  ARRIVAL_CHECK_MS,
  ARRIVAL_MS,
  BODY_BYTES,
  HEADER_BYTES,
  type Limits,
  PARAM_MAX,
  type RateLimits,
  rateLimits,
  URL_MAX,
} from './limits.ts'
import { REFUSED_CREDENTIAL } from './metrics.ts'
import { sendProblem } from './problem.ts'
import { tlsServerFactory } from './tls-server.ts'
import { registerReference } from './reference.ts'
import { RequestLog } from './request-log.ts'
import { Streams } from './streams.ts'

export interface AppOptions {
  readonly desk: Operations
  readonly identity: Identity
  /** Pool of the database with the schema `redrive_server`. */
  readonly pool: Pool
  /** Receives one line per request, without the query, headers and body. */
  readonly logger: FastifyBaseLogger
  /** URL at which browsers reach the server. */
  readonly publicUrl: string
  readonly limits?: Limits
  /** Addresses of proxies whose `X-Forwarded-For` is trusted. Default: none. */
  readonly trustProxy?: readonly string[]
  /** Certificate and key of the server. Default: plain http. */
  readonly keyPair?: { readonly cert: string; readonly key: string }
  /** Time without progress after which the response with an original body ends, in ms (default 60,000). */
  readonly stallMs?: number
  /** Called after every response of the API. */
  readonly onAnswered?: (operation: Operation, status: number, seconds: number) => void
  /** Called for each request with an invalid token or session. */
  readonly onRefusedCredential?: (kind: 'token' | 'session') => void
}

/** 60 s: a client that reads at all receives some bytes in this time. */
const STALL_MS = 60_000

/** Creates the app with the API and its reference. More routes can be added before it listens. */
export async function createApp(options: AppOptions): Promise<FastifyInstance> {
  const base = basePathOf(options.publicUrl)
  const { keyPair } = options
  const app = fastify({
    ...(keyPair === undefined ? {} : { serverFactory: tlsServerFactory(keyPair) }),
    loggerInstance: options.logger,
    logController: new RequestLog(),
    genReqId: () => randomUUID(),
    requestIdHeader: false,
    rewriteUrl: ({ url = '/' }) => withoutBase(url, base),
    bodyLimit: options.limits?.bodyBytes ?? BODY_BYTES,
    requestTimeout: ARRIVAL_MS,
    http: {
      maxHeaderSize: HEADER_BYTES,
      headersTimeout: ARRIVAL_MS,
      connectionsCheckingInterval: ARRIVAL_CHECK_MS,
    },
    routerOptions: { maxParamLength: PARAM_MAX },
    exposeHeadRoutes: false,
    forceCloseConnections: 'idle',
    trustProxy: options.trustProxy === undefined ? false : [...options.trustProxy],
    frameworkErrors: (error, request, reply) => void sendProblem(request, reply, error),
  })
  takeJsonOnly(app)
  addSecurityHeaders(app, options)
  await app.register(cookie)
  const limits = await rateLimits(app, options.limits ?? {})
  onEveryRequest(app, limits)
  onEveryResponse(app, options)
  closeQuietOnes(app)
  app.setErrorHandler((error, request, reply) => sendProblem(request, reply, error))
  app.setNotFoundHandler((request, reply) => sendProblem(request, reply, noSuchRoute()))
  await registerReference(app)
  await registerGuarded(app, options, limits)
  return app
}

function onEveryRequest(app: FastifyInstance, limits: RateLimits): void {
  app.addHook('onRequest', async (request, reply) => {
    reply.header('x-request-id', request.id)
    reply.header('cache-control', 'no-store')
    if ((request.raw.url ?? '').length > URL_MAX) {
      throw new ProblemError(
        'too_large',
        `The URL is longer than ${URL_MAX} characters. Send fewer filters.`,
      )
    }
    // Node uses the first one. A proxy may use the other one (RFC 9112 requires to reject it).
    if (hostsIn(request.raw) > 1) {
      throw new ProblemError('invalid', 'Expected one header "host". Check the proxy.')
    }
    if (request.routeOptions.config.rateLimit !== false) await limits.address(request)
  })
}

/** Node gives names and values in turn. */
const hostsIn = ({ rawHeaders }: IncomingMessage): number =>
  rawHeaders.filter((text, at) => at % 2 === 0 && text.toLowerCase() === 'host').length

function onEveryResponse(app: FastifyInstance, { onAnswered }: AppOptions): void {
  app.addHook('onResponse', async (request, reply) => {
    const { operation } = request.routeOptions.config
    const { statusCode: status, elapsedTime: ms } = reply
    const route = request.routeOptions.url
    const person = knownCaller(request)?.person
    const line = { method: request.method, route, operation, status, ms: Math.round(ms), person }
    request.log.info(line, 'request completed')
    if (operation !== undefined) onAnswered?.(operation, status, ms / 1_000)
  })
}

/** 1 h: expired rows only use disk space. */
const SWEEP_MS = 3_600_000

/** Registers the API. The caller is authenticated before the body is read. */
async function registerGuarded(
  app: FastifyInstance,
  options: AppOptions,
  limits: RateLimits,
): Promise<void> {
  const idempotency = new Idempotency(options.pool, createRetryingWriter(app.log))
  const streams = new Streams()
  const sweep = () => {
    idempotency
      .sweep()
      .catch((err: unknown) => app.log.warn({ err }, 'Cannot delete expired Idempotency-Keys'))
  }
  const timer = setInterval(sweep, SWEEP_MS).unref()
  app.addHook('preClose', async () => {
    clearInterval(timer)
    streams.stop()
  })
  await app.register(async (scope) => {
    scope.addHook('onRequest', (request) => authenticate(request, options, limits))
    const { desk, identity, stallMs = STALL_MS } = options
    registerApi(scope, { desk, identity, idempotency, streams, stallMs })
  })
}

async function authenticate(
  request: FastifyRequest,
  options: AppOptions,
  limits: RateLimits,
): Promise<void> {
  const { identity, desk, publicUrl } = options
  const { headers, cookies, method } = request
  const origin = { address: request.ip, requestId: request.id }
  const caller = await identity.identify({ headers, cookies, origin })
  if (caller === undefined) {
    reportRefused(request, options)
    throw unauthenticated()
  }
  keepCaller(request, caller)
  await limits.caller(request, caller)
  const csrf = await identity.csrfOf(caller)
  refuseForgery({ method, headers }, { caller, csrf, origin: new URL(publicUrl).origin })
  const { operation } = request.routeOptions.config
  if (operation === undefined)
    throw new Error('The route has no operation, so it has no required permission.')
  await desk.enter(caller, operation, (ROUTES[operation] satisfies Route).needs)
}

/** Counts and logs a wrong, expired or revoked credential. A request without one is ordinary. */
function reportRefused({ headers, cookies, ip, log }: FastifyRequest, options: AppOptions): void {
  const kind =
    headers.authorization !== undefined
      ? 'token'
      : cookies[publicUrlOf(options.publicUrl).cookies.session] !== undefined
        ? 'session'
        : undefined
  if (kind === undefined) return
  options.onRefusedCredential?.(kind)
  log.warn({ address: ip, kind }, REFUSED_CREDENTIAL)
}

const unauthenticated = () =>
  new ProblemError(
    'unauthenticated',
    "Authentication is required. Sign in at /auth/login, or send the header 'Authorization: Bearer rdv_…' with a valid token. A token ends when its owner has no permissions any more: groups count for some time after a sign-in (auth.oidc.groupsMaxAge).",
  )
