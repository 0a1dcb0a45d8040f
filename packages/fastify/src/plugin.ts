import { type ConsumerSet, consumerSet } from '@redrive/runtime'
import type { FastifyInstance } from 'fastify'
import { addHealthRoutes } from './health-routes.ts'
import type { RedriveFastifyOptions } from './options.ts'
import { readFastifyOptions } from './read-options.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** The consumers of the app, from the plugin of `@redrive/fastify`. */
    readonly redrive: ConsumerSet
  }
}

/**
 * Starts consumers when the app becomes ready, stops them when it closes, and adds health routes. If a consumer does
 * not start, `ready()` and `listen()` reject with its error.
 */
export async function redrive(app: FastifyInstance, options: RedriveFastifyOptions): Promise<void> {
  const { consumers, drainMs, health } = readFastifyOptions(options)
  const starts = Object.entries(consumers).map(([name, start]) => [name, () => start(app)] as const)
  const set = consumerSet(Object.fromEntries(starts))
  app.decorate('redrive', set)
  app.addHook('onReady', () => set.start())
  // Before all `onClose` hooks, so that running handlers still have the connections of other plugins.
  app.addHook('preClose', () => set.stop({ drain: drainMs }))
  if (health !== undefined) addHealthRoutes(app, set, health)
}

// The same as `fastify-plugin` sets: the decorator belongs to the app, and not to a scope of the plugin.
Object.assign(redrive, {
  [Symbol.for('skip-override')]: true,
  [Symbol.for('fastify.display-name')]: '@redrive/fastify',
  [Symbol.for('plugin-meta')]: { name: '@redrive/fastify', fastify: '5.x' },
})
