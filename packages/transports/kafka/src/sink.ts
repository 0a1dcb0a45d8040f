import { compatibilityPartitioner } from '@platformatic/kafka'
import { headerText, RedriveError } from '@redrive/core'
import type { OutboundEvent, Sink } from '@redrive/runtime'
import type { EventHeaderTable } from './header-tables.ts'
import { type KafkaSinkOptions, type ResolvedSinkOptions, resolveSinkOptions } from './options.ts'
import { closing, type KafkaProducer, type Message, producerOf } from './producer.ts'

/** 500: one request carries this number without a noticeable delay. */
const BATCH = 500

/** A sink that produces to Kafka. An event is accepted when all replicas in sync have acknowledged it. */
export class KafkaSink implements Sink {
  readonly name: string
  readonly batch: number = BATCH
  readonly #options: ResolvedSinkOptions
  #producer: KafkaProducer | undefined

  /** @internal */
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
      // It is unknown which records the broker stored, so this producer's sequence numbers are not used again.
      if (this.#producer === producer) this.#producer = undefined
      void closing(producer)
      throw error
    }
  }

  #message(event: OutboundEvent): Message {
    const { id, key, type, lane, at, bytes, contentType, headers } = event
    const described: Partial<EventHeaderTable> = {
      'content-type': contentType,
      ce_type: type,
      // Not used as the time of the record: the broker counts retention from it, so an event that waited here
      // for a week would be deleted before it is read.
      ce_time: new Date(at).toISOString(),
    }
    const eventHeaders = {
      ...headers,
      ...described,
      'redrive-id': headerText(id),
      ...(key === id ? {} : { 'redrive-key': headerText(key) }),
    }
    const entries = Object.entries(eventHeaders).map(
      ([name, value]) => [Buffer.from(name), Buffer.from(value)] as const,
    )
    const message = {
      topic: this.#options.topic(event),
      value: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength),
      headers: new Map(entries),
    }
    if (lane === undefined) return message
    const recordKey = Buffer.from(lane)
    // The same partitioner as the Java producers, so that all events of one key are in one partition.
    const partition = compatibilityPartitioner(message, recordKey)
    return { ...message, key: recordKey, partition }
  }

  async healthCheck(): Promise<void> {
    try {
      await this.#current().metadata({ topics: [], forceUpdate: true, retries: 0 })
    } catch (cause) {
      const why = cause instanceof Error ? cause.message : String(cause)
      throw new RedriveError(
        'UNREACHABLE',
        `Cannot connect to Kafka: ${why}. Check that the brokers run. Redrive repeats the check.`,
        { cause },
      )
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

/** Creates a sink that produces events and waits until the brokers have stored them, for `relay` of the runtime. */
export function kafkaSink(options: KafkaSinkOptions): KafkaSink {
  return new KafkaSink(resolveSinkOptions(options))
}
