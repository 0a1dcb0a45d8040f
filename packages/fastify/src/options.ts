import type { Duration } from '@redrive/core'
import type { Awaitable, Consumer, HealthOptions } from '@redrive/runtime'
import type { FastifyInstance } from 'fastify'

/** The options of the plugin. */
export interface RedriveFastifyOptions {
  /** Functions that start a consumer with `consume`, by name. They run when the app becomes ready. */
  readonly consumers: Readonly<Record<string, (app: FastifyInstance) => Awaitable<Consumer>>>
  /** Maximum time to stop the consumers when the app closes. Default '25s'. */
  readonly drain?: Duration
  /** The health routes, as in `healthHandler`, or 'off'. */
  readonly health?: HealthOptions | 'off'
}
