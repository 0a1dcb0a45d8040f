import type { Duration } from '@redrive/core'
import type { Awaitable, Consumer } from '@redrive/runtime'
import type { FastifyInstance } from 'fastify'

/** The options of the plugin. */
export interface RedriveFastifyOptions {
  /** Functions that start a consumer with `consume`, by name. They run when the app becomes ready. */
  readonly consumers: Readonly<Record<string, (app: FastifyInstance) => Awaitable<Consumer>>>
  /** Maximum time to stop the consumers when the app closes. Default '25s'. */
  readonly drain?: Duration
  /** The health routes, or 'off'. */
  readonly health?: HealthRouteOptions | 'off'
}

/** Where the health routes are, and when the app is ready. */
export interface HealthRouteOptions {
  /** Path before `/live` and `/ready`. It begins with a slash. Default '/health'. */
  readonly path?: string
  /**
   * 'consumers': not ready while a consumer is `down`. 'started': ready from the start of the consumers until
   * the app closes, for an app that also serves requests. Default 'consumers'.
   */
  readonly ready?: 'consumers' | 'started'
}
