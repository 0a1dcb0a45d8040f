import type { IncomingMessage, ServerResponse } from 'node:http'
import { type HealthOptions, readHealthOptions } from './options.ts'
import { type CheckedConsumers, type HealthResponse, healthRoutes } from './routes.ts'
import type { Awaitable } from '../awaitable.ts'

/** Responds to a request of `node:http`. Calls `next` for other paths; without it, they get 404. */
export type HealthHandler = (
  request: IncomingMessage,
  response: ServerResponse,
  next?: () => void,
) => void

/**
 * Creates a handler for `node:http`, Express and NestJS.
 *
 * - `/healthz/live`: the process can respond. Always 200.
 * - `/healthz/ready`: 200 while every consumer is up, see `ready`. It depends only on the state of the process.
 * - `/healthz/consumer`: the state of each consumer with its breaker, dead letters, last message and failure rate.
 *   503 unless every consumer is up.
 */
export function healthHandler(
  consumers: CheckedConsumers,
  options: HealthOptions = {},
): HealthHandler {
  const routes = healthRoutes(consumers, readHealthOptions(options))
  return (request, response, next) => {
    const [path = ''] = (request.url ?? '').split('?')
    const route = routes.get(path)
    if (route !== undefined) void respond(request, response, route)
    else if (next !== undefined) next()
    else response.writeHead(404).end()
  }
}

async function respond(
  { method }: IncomingMessage,
  response: ServerResponse,
  route: () => Awaitable<HealthResponse>,
): Promise<void> {
  if (method !== 'GET' && method !== 'HEAD') {
    response.writeHead(405, { allow: 'GET, HEAD' }).end()
    return
  }
  const { status, body } = await route()
  response.writeHead(status, { 'content-type': 'application/json', 'cache-control': 'no-store' })
  response.end(method === 'HEAD' ? undefined : JSON.stringify(body))
}
