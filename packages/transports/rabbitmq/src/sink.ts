import { headerText, RedriveError } from '@redrive/core'
import type { OutboundEvent, Sink } from '@redrive/runtime'
import {
  resolveSinkOptions,
  type RabbitMqSinkOptions,
  type ResolvedSinkOptions,
} from './options.ts'
import { Publisher } from './publish.ts'

/** 100: a broker confirms this number together without a noticeable delay. */
const BATCH = 100

/** A sink that publishes to RabbitMQ. An event is accepted when the broker has stored it in a queue. */
export class RabbitMqSink implements Sink {
  readonly name: string
  readonly batch: number = BATCH
  readonly #options: ResolvedSinkOptions
  readonly #publisher: Publisher

  constructor(options: RabbitMqSinkOptions) {
    this.#options = resolveSinkOptions(options)
    const { urls, connect, confirmTimeoutMs, exchange } = this.#options
    this.name = `rabbitmq ${exchange || '(default exchange)'}`
    const onBlocked = () => undefined
    this.#publisher = new Publisher({ urls, connect, confirmTimeoutMs, onBlocked, isSink: true })
  }

  async send(
    events: readonly OutboundEvent[],
    { signal }: { readonly signal: AbortSignal },
  ): Promise<void> {
    await this.#publisher.open()
    signal.throwIfAborted()
    // Async: an event that cannot be encoded must not leave the proofs of the others without a caller.
    const stored = events.map(async (event) => this.#publisher.send(this.#outgoing(event)))
    await Promise.all(stored.map((proof) => this.#publisher.inTime(proof)))
  }

  #outgoing(event: OutboundEvent) {
    const { id, key, type, at, bytes, contentType, headers } = event
    const { exchange, routingKey } = this.#options
    return {
      exchange,
      routingKey: routingKey(event),
      content: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength),
      properties: {
        messageId: id,
        type,
        contentType,
        timestamp: Math.floor(at / 1_000),
        headers: key === id ? headers : { ...headers, 'redrive-key': headerText(key) },
      },
    }
  }

  async healthCheck(): Promise<void> {
    await this.#publisher.open()
    if (!this.#publisher.isConnected) {
      throw new RedriveError('UNREACHABLE', 'RabbitMQ is not connected. Redrive is reconnecting.')
    }
  }

  async close(): Promise<void> {
    await this.#publisher.close()
  }
}

/** Creates a sink that publishes events and waits until the broker has stored them, for `relay` of the runtime. */
export function rabbitmqSink(options: RabbitMqSinkOptions): RabbitMqSink {
  return new RabbitMqSink(options)
}
