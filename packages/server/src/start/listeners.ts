import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { RedriveError } from '@redrive/core'
import { fastify, type FastifyBaseLogger, type FastifyInstance, LogController } from 'fastify'
import type { Config } from '../config/schema.ts'
import { type Address, shownAddress } from '../config/values.ts'
import { type HealthParts, registerHealth } from '../http/health.ts'
import { registerMetrics, type ServerMetrics } from '../http/metrics.ts'
import { sendProblem } from '../http/problem.ts'
import type { Identity } from '../identity/port.ts'
import type { Log } from './log.ts'

export interface ListenParts {
  readonly config: Config
  readonly health: HealthParts
  readonly metrics: ServerMetrics
  readonly identity: Pick<Identity, 'identify'>
  readonly log: Log
  /** With the API in it; undefined: a process without that role. */
  readonly app: FastifyInstance | undefined
}

export interface Listeners {
  readonly url: string
  readonly metricsUrl: string | undefined
  /** Takes nobody in any more; resolves when everybody who is in has an answer. */
  close(): Promise<void>
}

/** Health checks everywhere, and metrics where the config says. */
export async function listen(parts: ListenParts): Promise<Listeners> {
  const { config, health, metrics, identity, log } = parts
  const main = parts.app ?? bare(log)
  letGoOfConnections(main, health.isStopping)
  registerHealth(main, health)
  registerMetrics(main, metrics, identity)
  const own = config.metrics.listen === undefined ? undefined : bare(log)
  if (own !== undefined) registerMetrics(own, metrics, undefined)
  const close = async () => {
    await Promise.all([main.close(), own?.close()])
  }
  try {
    const url = await listenAt(main, config.listen)
    const metricsUrl =
      own === undefined || config.metrics.listen === undefined
        ? undefined
        : await listenAt(own, config.metrics.listen)
    log.info(`Listening at ${url}.`)
    if (metricsUrl !== undefined) log.info(`Metrics are at ${metricsUrl}/metrics, for everybody.`)
    return { url, metricsUrl, close }
  } catch (error) {
    await close()
    throw error
  }
}

/**
 * Connections are kept for the next request, and a server that closes waits for all of them. So from the
 * moment it stops, whoever gets an answer is told to come again by another connection, and what is idle after
 * an answer is closed.
 */
function letGoOfConnections({ server }: FastifyInstance, isStopping: () => boolean): void {
  server.prependListener('request', (_: IncomingMessage, response: ServerResponse) => {
    if (isStopping()) response.shouldKeepAlive = false
    response.once('close', () => {
      if (isStopping()) setImmediate(() => server.closeIdleConnections())
    })
  })
}

/** Without the API. What fails is in the log, and its answer says as little as everywhere. */
function bare(log: Log): FastifyInstance {
  const logger: FastifyBaseLogger = log.child({}, { level: 'warn' })
  const app = fastify({
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
    // By its name Node would listen twice, in IPv4 and IPv6, with a server that nobody gets hold of.
    const host = address.host === 'localhost' ? '127.0.0.1' : address.host
    return await app.listen({ ...address, host })
  } catch (cause) {
    const { code = 'unknown' } = cause as NodeJS.ErrnoException
    throw new RedriveError(
      'UNREACHABLE',
      `Cannot listen at ${shownAddress(address)} (${code}). Say another address, or end what uses it.`,
      { cause },
    )
  }
}
