import type { ConsumerStats } from './consumer-stats.ts'
import type { Dependency } from './dependency.ts'
import type { EmitterStats } from './emit/result.ts'
import type { ConsumerHealth } from './health/consumer.ts'

/** A consumer of this process that has started and not stopped. */
export interface RunningConsumer {
  /** Name of the consumer. */
  readonly handler: string
  readonly consumer: {
    readonly source: string
    readonly dependency: Dependency
    stats(): ConsumerStats
    health(): ConsumerHealth
  }
}

/** An emitter of this process that is not closed. */
export interface OpenEmitter {
  stats(): EmitterStats
}

const consumers = new Set<RunningConsumer>()
const emitters = new Set<OpenEmitter>()

/** Returns the consumers of this process, for metrics. */
export const runningConsumers = (): Iterable<RunningConsumer> => consumers

/** Returns the open emitters of this process, for metrics. */
export const openEmitters = (): Iterable<OpenEmitter> => emitters

/** Adds a consumer. Returns a function that removes it. */
export function addConsumer(consumer: RunningConsumer): () => void {
  consumers.add(consumer)
  return () => void consumers.delete(consumer)
}

/** Adds an emitter. Returns a function that removes it. */
export function addEmitter(emitter: OpenEmitter): () => void {
  emitters.add(emitter)
  return () => void emitters.delete(emitter)
}
