import { randomUUID } from 'node:crypto'
import type { MemoryBroker } from './broker.ts'
import { type MemoryOptions, resolveOptions } from './options.ts'
import { MemoryTransport } from './transport.ts'
import { MemorySink } from './sink.ts'
import { MemorySource } from './source.ts'

export {
  MemoryBroker,
  type MemoryBrokerOptions,
  type MemoryConnection,
  type MemorySubscription,
} from './broker.ts'
export type { MemoryDelivery } from './delivery.ts'
export type { MemoryOptions } from './options.ts'
export type { Handed, MemoryMessage } from './queue.ts'
export { deadLetterQueue, quarantineQueue, replayedQueue } from './topology.ts'
export type { MemorySink, MemorySource, MemoryTransport }

/** Creates a transport on an in-memory broker: the reference implementation, and a transport for your tests. */
export function memory(options: MemoryOptions): MemoryTransport {
  return new MemoryTransport(resolveOptions('memory()', options))
}

/** Creates the control-plane side of the same queue. */
export function memorySource(options: MemoryOptions): MemorySource {
  return new MemorySource(resolveOptions('memorySource()', options))
}

/** Creates a sink that publishes events to a queue, for `relay` and the emitter in tests. */
export function memorySink(options: MemoryOptions): MemorySink {
  return new MemorySink(resolveOptions('memorySink()', options))
}

/** Options of a sent message; everything has a default. */
export interface MemorySend {
  readonly id?: string
  readonly type?: string
  readonly lane?: string
  readonly contentType?: string
  readonly headers?: Readonly<Record<string, unknown>>
}

/** Sends a message to a queue: JSON unless the body is already bytes. Returns its id. */
export function send(
  broker: MemoryBroker,
  queue: string,
  body: unknown,
  { id = randomUUID(), type, lane, contentType, headers = {} }: MemorySend = {},
): string {
  const bytes = body instanceof Uint8Array ? body : new TextEncoder().encode(JSON.stringify(body))
  broker.queue(queue).put({ id, bytes, contentType, type, lane, headers }, 0)
  return id
}
