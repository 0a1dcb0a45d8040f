import type { ConsumerSet } from '@redrive/runtime'
import { healthRoutes, type ResolvedHealth } from '@redrive/runtime/internal'
import type { FastifyInstance } from 'fastify'

/** Adds the routes of `healthHandler` to the app. */
export function addHealthRoutes(
  app: FastifyInstance,
  consumers: ConsumerSet,
  options: ResolvedHealth,
): void {
  for (const [path, route] of healthRoutes(consumers, options)) {
    // Probes call these routes every few seconds; their lines hide the others.
    app.get(path, { logLevel: 'warn' }, async (_, reply) => {
      const { status, body } = await route()
      return reply.code(status).header('cache-control', 'no-store').send(body)
    })
  }
}
