/** One event as a sink receives it. */
export interface OutboundEvent {
  readonly id: string
  /** Business idempotency key; it stays the same when the event is sent again. */
  readonly key: string
  readonly type: string
  /** The unit of ordering, where the destination has one. */
  readonly lane: string | undefined
  readonly at: number
  readonly bytes: Uint8Array
  readonly contentType: string
  readonly headers: Readonly<Record<string, string>>
}

/**
 * One destination of outbound events. `send` resolves when the destination has accepted the whole
 * batch and rejects otherwise. It does not retry and it respects the signal.
 */
export interface Sink {
  readonly name: string
  /** Maximum events in one `send`. */
  readonly batch: number
  send(events: readonly OutboundEvent[], options: { readonly signal: AbortSignal }): Promise<void>
  /**
   * Resolves when the destination would accept events; used only while it is unhealthy. It uses the same method and
   * path as `send`: a success of another request would close the breaker too early. Absent: the destination has
   * no such request without an effect, and a real event is the probe.
   */
  healthCheck?(options: { readonly signal: AbortSignal }): Promise<void>
  close(): Promise<void>
}

/** A sink with a health check. */
export interface CheckedSink extends Sink {
  healthCheck(options: { readonly signal: AbortSignal }): Promise<void>
}
