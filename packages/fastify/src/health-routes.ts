import type { ConsumerSet, ConsumerSetHealth } from '@redrive/runtime'
import type { FastifyInstance } from 'fastify'
import type { HealthRouteOptions } from './options.ts'

/**
 * Adds `GET {path}/live` and `GET {path}/ready`. Liveness does not depend on the consumers: a restart repairs neither
 * a broker nor a dependency.
 */
export function addHealthRoutes(
  app: FastifyInstance,
  set: ConsumerSet,
  { path, ready }: Required<HealthRouteOptions>,
): void {
  let isStarted = false
  let isClosing = false
  app.addHook('onReady', async () => {
    // The hook of the plugin runs before this one and waits for the consumers.
    isStarted = true
  })
  app.addHook('preClose', async () => {
    isClosing = true
  })
  const isReady = ({ status }: ConsumerSetHealth) =>
    isStarted && !isClosing && (ready === 'started' || status !== 'down')
  // Probes call these routes every few seconds; their lines hide the others.
  const quiet = { logLevel: 'warn' } as const
  app.get(`${path}/live`, quiet, async () => ({ status: 'up' }))
  app.get(`${path}/ready`, quiet, async (_, reply) => {
    const health = set.health()
    return reply.code(isReady(health) ? 200 : 503).send(health)
  })
}
