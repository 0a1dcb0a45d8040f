import { headerText } from '@redrive/core'
import type { OutboundEvent, Sink } from '@redrive/runtime'
import { ManagedConnection } from './connection.ts'
import { toHeaders } from './delivery.ts'
import type { NatsEventHeaderTable } from './header-tables.ts'
import { type NatsSinkOptions, type ResolvedSinkOptions, resolveSinkOptions } from './options.ts'
import { store } from './publish.ts'

/** 100: a server confirms this number together without a noticeable delay. */
const BATCH = 100

/**
 * A sink that publishes to JetStream. An event is accepted when a stream has stored it. It has no health check: no request
 * without an effect shows that the stream of a subject is not full. After failures, a real event is the probe.
 */
export class NatsSink implements Sink {
  readonly name = 'nats'
  readonly batch: number = BATCH
  readonly #options: ResolvedSinkOptions
  readonly #connection: ManagedConnection

  /** @internal */
  constructor(options: ResolvedSinkOptions) {
    this.#options = options
    this.#connection = new ManagedConnection(options.connect)
  }

  async send(
    events: readonly OutboundEvent[],
    { signal }: { readonly signal: AbortSignal },
  ): Promise<void> {
    const connection = await this.#connection.open()
    signal.throwIfAborted()
    const { confirmTimeoutMs } = this.#options
    await Promise.all(
      events.map((event) => store(connection, this.#outgoing(event), confirmTimeoutMs)),
    )
  }

  #outgoing(event: OutboundEvent) {
    const { id, key, type, at, bytes, contentType, headers } = event
    const described: NatsEventHeaderTable = {
      'content-type': contentType,
      'ce-type': type,
      'ce-time': new Date(at).toISOString(),
    }
    return {
      subject: this.#options.subject(event),
      bytes,
      headers: toHeaders({
        ...headers,
        ...described,
        'redrive-id': headerText(id),
        ...(key === id ? {} : { 'redrive-key': headerText(key) }),
      }),
      messageId: id,
    }
  }

  async close(): Promise<void> {
    await this.#connection.close()
  }
}

/** Creates a sink that publishes events and waits until a stream has stored them, for `relay` of the runtime. */
export function natsSink(options: NatsSinkOptions): NatsSink {
  return new NatsSink(resolveSinkOptions(options))
}
