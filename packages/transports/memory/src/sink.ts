import { headerText } from '@redrive/core'
import type { OutboundEvent, Sink } from '@redrive/runtime'
import type { MemoryConnection } from './broker.ts'
import type { ResolvedOptions } from './options.ts'
import type { MemoryMessage } from './queue.ts'

/** 100: as in the sinks of real brokers. */
const BATCH = 100

/** A sink that publishes to a queue of the memory broker. Like a broker, it stores an event twice when it is sent twice. */
export class MemorySink implements Sink {
  readonly name: string
  readonly batch: number = BATCH
  readonly #options: ResolvedOptions
  #connection: MemoryConnection

  /** @internal */
  constructor(options: ResolvedOptions) {
    this.#options = options
    this.name = `memory ${options.queue}`
    this.#connection = this.#connect()
  }

  async send(
    events: readonly OutboundEvent[],
    { signal }: { readonly signal: AbortSignal },
  ): Promise<void> {
    for (const event of events) {
      signal.throwIfAborted()
      await this.#connection.publish(this.#options.queue, toMessage(event), 0)
    }
  }

  async healthCheck(): Promise<void> {
    await this.#connection.depth(this.#options.queue)
  }

  async close(): Promise<void> {
    this.#connection.close()
  }

  /** Connects again when needed: a producer survives restarts of its broker. */
  #connect(): MemoryConnection {
    return this.#options.connect(() => {
      this.#connection = this.#connect()
    })
  }
}

function toMessage({
  id,
  key,
  type,
  lane,
  bytes,
  contentType,
  headers,
}: OutboundEvent): MemoryMessage {
  const keyed = key === id ? headers : { ...headers, 'redrive-key': headerText(key) }
  return { id, bytes, contentType, type, lane, headers: keyed }
}
