import type { CheckedSink, OutboundEvent } from '@redrive/runtime'

export interface RecordingSinkOptions {
  /** Default 'recording'. */
  readonly name?: string
  /** Maximum events in one `send`. Default 100. */
  readonly batch?: number
  /** Called before events are accepted: throw or reject to refuse them, wait to be slow. Default: accepts all. */
  readonly onSend?: (
    events: readonly OutboundEvent[],
    options: { readonly signal: AbortSignal },
  ) => unknown
  /** The same for health checks. Default: healthy. */
  readonly onHealthCheck?: () => unknown
}

/** A sink in memory that records the events it accepted. */
export interface RecordingSink extends CheckedSink {
  /** Accepted events, in order. */
  readonly events: readonly OutboundEvent[]
  /** Number of events of each `send`, including refused ones. */
  readonly sizes: readonly number[]
  readonly healthChecks: number
  readonly isClosed: boolean
}

/**
 * Creates a sink in memory that records its events.
 *
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
