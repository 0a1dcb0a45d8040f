import type { OutboundEvent, Sink } from '@redrive/runtime'

export interface RecordingSinkOptions {
  /** Default 'recording'. */
  readonly name?: string
  /** Most events in one `send`. Default 100. */
  readonly batch?: number
  /** Asked before events are taken: throw or reject to refuse them, wait to be slow. Default: takes all. */
  readonly onSend?: (
    events: readonly OutboundEvent[],
    options: { readonly signal: AbortSignal },
  ) => unknown
  /** The same for health checks. Default: well. */
  readonly onHealthCheck?: () => unknown
}

/** A sink in memory that tells a test what it was given. */
export interface RecordingSink extends Sink {
  /** What it has taken, in order. */
  readonly events: readonly OutboundEvent[]
  /** How many events each `send` brought, those that were refused included. */
  readonly sizes: readonly number[]
  readonly healthChecks: number
  readonly isClosed: boolean
}

/**
 * ```ts
 * const loki = recordingSink({ onSend: () => { throw new Error('down') } })
 * ```
 */
export function recordingSink(options: RecordingSinkOptions = {}): RecordingSink {
  const { name = 'recording', batch = 100, onSend, onHealthCheck } = options
  const events: OutboundEvent[] = []
  const sizes: number[] = []
  let healthChecks = 0
  let isClosed = false
  return {
    name,
    batch,
    events,
    sizes,
    get healthChecks() {
      return healthChecks
    },
    get isClosed() {
      return isClosed
    },
    async send(sent, how) {
      sizes.push(sent.length)
      await onSend?.(sent, how)
      events.push(...sent)
    },
    async healthCheck() {
      healthChecks += 1
      await onHealthCheck?.()
    },
    close() {
      isClosed = true
      return Promise.resolve()
    },
  }
}
