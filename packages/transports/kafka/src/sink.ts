import { compatibilityPartitioner } from '@platformatic/kafka'
import { headerText, RedriveError } from '@redrive/core'
import type { OutboundEvent, Sink } from '@redrive/runtime'
import { type KafkaSinkOptions, type ResolvedSinkOptions, resolveSinkOptions } from './options.ts'
import { closing, type KafkaProducer, type Message, producerOf } from './publish.ts'

/** 500: as many as one request carries without making anyone wait. */
const BATCH = 500

/** A sink that produces: accepted means acknowledged by all replicas in sync. */
export class KafkaSink implements Sink {
  readonly name: string
  readonly batch: number = BATCH
  readonly #options: ResolvedSinkOptions
  #producer: KafkaProducer | undefined

  constructor(options: ResolvedSinkOptions) {
    this.#options = options
    this.name = `kafka ${options.name}`
  }

  async send(
    events: readonly OutboundEvent[],
    { signal }: { readonly signal: AbortSignal },
  ): Promise<void> {
    signal.throwIfAborted()
    const producer = this.#current()
    try {
      await producer.send({ messages: events.map((event) => this.#message(event)) })
    } catch (error) {
      // Nobody knows what the broker has of it, so nothing is built on this producer's numbering.
      if (this.#producer === producer) this.#producer = undefined
      void closing(producer)
      throw error
    }
  }

  #message(event: OutboundEvent): Message {
    const { id, key, type, lane, at, bytes, contentType, headers } = event
    const own = {
      ...headers,
      'content-type': contentType,
      ce_type: type,
      // Not as the time of the record: the broker counts retention from that, and what was kept here for a week
      // would be gone before anybody reads it.
      ce_time: new Date(at).toISOString(),
      'redrive-id': headerText(id),
      ...(key === id ? {} : { 'redrive-key': headerText(key) }),
    }
    const entries = Object.entries(own).map(
      ([name, value]) => [Buffer.from(name), Buffer.from(value)] as const,
    )
    const message = {
      topic: this.#options.topic(event),
      value: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength),
      headers: new Map(entries),
    }
    if (lane === undefined) return message
    const recordKey = Buffer.from(lane)
    // As Java's producers choose it: events of one key meet, whoever produced them.
    const partition = compatibilityPartitioner(message, recordKey)
    return { ...message, key: recordKey, partition }
  }

  async healthCheck(): Promise<void> {
    try {
      await this.#current().metadata({ topics: [], forceUpdate: true, retries: 0 })
    } catch (cause) {
      throw new RedriveError('UNREACHABLE', 'Kafka does not answer; it is asked again.', { cause })
    }
  }

  #current(): KafkaProducer {
    this.#producer ??= producerOf(this.#options.client)
    return this.#producer
  }

  async close(): Promise<void> {
    if (this.#producer !== undefined) await closing(this.#producer)
  }
}

/** Produces events with proof that the brokers have stored them: for `relay` of the runtime. */
export function kafkaSink(options: KafkaSinkOptions): KafkaSink {
  return new KafkaSink(resolveSinkOptions(options))
}
