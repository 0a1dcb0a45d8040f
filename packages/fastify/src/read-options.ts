import { type Check, isRecord, readOptions, type Section } from '@redrive/core/internal'
import { readHealth, type ResolvedHealth } from '@redrive/runtime/internal'
import type { RedriveFastifyOptions } from './options.ts'

export interface ResolvedFastifyOptions {
  readonly consumers: RedriveFastifyOptions['consumers']
  readonly drainMs: number
  readonly health: ResolvedHealth | undefined
}

/** Shorter than the 30 s that orchestrators allow between the signal and the kill. */
const DRAIN_MS = 25_000

/** Checks the options of the plugin. Throws one error that lists every problem. */
export function readFastifyOptions(options: RedriveFastifyOptions): ResolvedFastifyOptions {
  return readOptions('the plugin of @redrive/fastify', options, (top) => {
    const health = top.optional('health')
    return {
      consumers: top.required<RedriveFastifyOptions['consumers']>('consumers', CONSUMERS),
      drainMs: top.duration('drain', DRAIN_MS),
      health: health === undefined ? undefined : readWhole(health),
    }
  })
}

function readWhole(section: Section): ResolvedHealth {
  const health = readHealth(section, 'started')
  section.end()
  return health
}

const CONSUMERS: Check = {
  isValid: (value) =>
    isRecord(value) && Object.values(value).every((start) => typeof start === 'function'),
  expected: 'an object with functions that start a consumer, such as { orders: () => consume(…) }',
}
