import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Server as HttpsServer } from 'node:https'
import { RedriveError } from '@redrive/core'
import { fastify, type FastifyBaseLogger, type FastifyInstance, LogController } from 'fastify'
import type { Config } from '../config/schema.ts'
import { type Address, shownAddress } from '../config/values.ts'
import { type HealthDeps, registerHealth } from '../http/health.ts'
import { tlsServerFactory } from '../http/tls-server.ts'
import { registerMetrics, type ServerMetrics } from '../http/metrics.ts'
import { sendProblem } from '../http/problem.ts'
import type { Identity } from '../identity/port.ts'
import type { Log } from './log.ts'
import { type CertificateWatch, type KeyPair, watchCertificate } from './tls.ts'

export interface ListenerDeps {
  readonly config: Config
  readonly health: HealthDeps
  readonly metrics: ServerMetrics
  readonly identity: Pick<Identity, 'identify'>
  readonly log: Log
  /** The app with the API. Undefined in a process without the role `api`. */
  readonly app: FastifyInstance | undefined
  /** Certificate and key of `listen`. Default: plain http. */
  readonly keyPair?: KeyPair | undefined
}

export interface Listeners {
  readonly url: string
  readonly metricsUrl: string | undefined
  /** Stops accepting connections. Resolves when every open request has a response. */
  close(): Promise<void>
}

/** Starts the listeners: health checks in every process, and metrics as configured. */
export async function listen(parts: ListenerDeps): Promise<Listeners> {
  const { config, health, metrics, identity, log } = parts
  const main = parts.app ?? bare(log, parts.keyPair)
  closeConnectionsOnStop(main, health.isStopping)
  registerHealth(main, health)
  registerMetrics(main, metrics, identity)
  const metricsApp = config.metrics.listen === undefined ? undefined : bare(log)
  if (metricsApp !== undefined) registerMetrics(metricsApp, metrics, undefined)
  const watch = watchOf(parts, main)
  const close = async () => {
    watch?.stop()
    await Promise.all([main.close(), metricsApp?.close()])
  }
  try {
    const plainUrl = await listenAt(main, config.listen)
    const url = parts.keyPair === undefined ? plainUrl : plainUrl.replace(/^http:/, 'https:')
    const metricsUrl =
      metricsApp === undefined || config.metrics.listen === undefined
        ? undefined
        : await listenAt(metricsApp, config.metrics.listen)
    log.info(`Listening on ${url}.`)
    if (metricsUrl !== undefined) {
      log.info(`Serving metrics on ${metricsUrl}/metrics, without authentication.`)
    }
    return { url, metricsUrl, close }
  } catch (error) {
    await close()
    throw error
  }
}

function watchOf(
  { config, keyPair, log }: ListenerDeps,
  { server }: FastifyInstance,
): CertificateWatch | undefined {
  if (config.tls === undefined || keyPair === undefined) return undefined
  return watchCertificate(server as unknown as HttpsServer, config.tls, keyPair, { log })
}

/**
 * Closes each connection after its response while the server stops. Clients keep connections open for the next
 * request, and a closing server waits for all of them.
 */
function closeConnectionsOnStop({ server }: FastifyInstance, isStopping: () => boolean): void {
  server.prependListener('request', (_: IncomingMessage, response: ServerResponse) => {
    if (isStopping()) response.shouldKeepAlive = false
    response.once('close', () => {
      if (isStopping()) setImmediate(() => server.closeIdleConnections())
    })
  })
}

/** Creates an app without the API. It logs errors and does not reveal them in responses, as the API does. */
function bare(log: Log, keyPair?: KeyPair): FastifyInstance {
  const logger: FastifyBaseLogger = log.child({}, { level: 'warn' })
  const app = fastify({
    ...(keyPair === undefined ? {} : { serverFactory: tlsServerFactory(keyPair) }),
    loggerInstance: logger,
    logController: new LogController({
      disableRequestLogging: true,
      requestIdLogLabel: 'requestId',
    }),
    genReqId: () => randomUUID(),
    requestIdHeader: false,
  })
  app.setErrorHandler((error, request, reply) => sendProblem(request, reply, error))
  return app
}

async function listenAt(app: FastifyInstance, address: Address): Promise<string> {
  try {
    // For "localhost" Fastify would open a second server (IPv4 and IPv6) that this code cannot reach.
    const host = address.host === 'localhost' ? '127.0.0.1' : address.host
    return await app.listen({ ...address, host })
  } catch (cause) {
    const { code = 'unknown' } = cause as NodeJS.ErrnoException
    throw new RedriveError(
      'UNREACHABLE',
      `Cannot listen on "${shownAddress(address)}" (${code}). Set another address, or stop the process that uses it.`,
      { cause },
    )
  }
}
