import { createHash } from 'node:crypto'
import type { OutboundEvent, Sink } from '@redrive/runtime'
import type { Pool } from 'pg'
import { explained } from './explain.ts'
import { readQueueOptions } from './options.ts'
import { outbox, type Outbox, toRow } from './outbox.ts'
import type { Tables } from './schema.ts'
import { ADD_ONCE } from './sql/outbox.ts'
import { runStatement } from './statement.ts'

export interface PostgresSinkOptions {
  /** Pool of connections to the primary, never to a replica. The sink uses one connection per batch and closes none. */
  readonly pool: Pool
  /** The queue; consumers use the same name. */
  readonly queue: string
  /** The schema of the outbox. Default 'redrive'. */
  readonly schema?: string
}

/** 500: one statement carries this number without a noticeable delay. */
const BATCH = 500

/** A sink that adds events to an outbox. An event is accepted when it is committed. An event sent twice is stored once. */
export class PostgresSink implements Sink {
  readonly name: string
  readonly batch: number = BATCH
  readonly #tables: Tables
  readonly #outbox: Outbox

  constructor(options: PostgresSinkOptions) {
    const { queue, ...tables } = readQueueOptions('postgresSink()', options)
    this.#tables = tables
    this.#outbox = outbox({ queue, ...tables })
    this.name = `postgres ${queue}`
  }

  async send(
    events: readonly OutboundEvent[],
    { signal }: { readonly signal: AbortSignal },
  ): Promise<void> {
    signal.throwIfAborted()
    const rows = JSON.stringify(events.map(rowOf))
    await this.#inTime(ADD_ONCE, [this.#outbox.queue, rows], signal)
    this.#outbox.wake()
  }

  /** Runs an insert without rows, which fails when the table is missing or the server is read-only. */
  async healthCheck({ signal }: { readonly signal: AbortSignal }): Promise<void> {
    await this.#inTime(ADD_ONCE, [this.#outbox.queue, '[]'], signal)
  }

  /** Runs a statement until the signal aborts. A statement that ends later does no harm, because each event is added once. */
  async #inTime(text: string, values: readonly unknown[], signal: AbortSignal): Promise<void> {
    const { promise: aborted, reject } = Promise.withResolvers<never>()
    const onAbort = () => reject(signal.reason)
    signal.addEventListener('abort', onAbort, { once: true })
    try {
      await Promise.race([runStatement(this.#tables, text, values), aborted])
    } catch (error) {
      throw explained(error, this.#tables.schema)
    } finally {
      signal.removeEventListener('abort', onAbort)
    }
  }

  /** Does nothing, because the caller owns the pool. */
  async close(): Promise<void> {}
}

function rowOf(event: OutboundEvent) {
  const { id, key, type, lane, at, bytes, contentType, headers } = event
  const row = toRow({
    body: bytes,
    key,
    type,
    contentType,
    headers,
    ...(lane !== undefined && { lane }),
  })
  return { ...row, id: rowId(id, at) }
}

const UUID_V7 = /^[\da-f]{8}-[\da-f]{4}-7[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/i

/**
 * Returns the id of the event if it is a UUIDv7. Otherwise derives one from its time and id, always the same.
 * A day partition of the outbox is a range of ids, so another id would not be dropped with its day.
 */
function rowId(id: string, at: number): string {
  if (UUID_V7.test(id)) return id
  const time = Math.max(0, Math.floor(at)).toString(16).padStart(12, '0')
  const hash = createHash('sha256').update(id).digest('hex')
  const variant = (8 + (Number.parseInt(hash[3] ?? '0', 16) % 4)).toString(16)
  return `${time.slice(0, 8)}-${time.slice(8, 12)}-7${hash.slice(0, 3)}-${variant}${hash.slice(4, 7)}-${hash.slice(7, 19)}`
}

/** Creates a sink that adds each event once to an outbox, for `relay` and the emitter of the runtime. */
export function postgresSink(options: PostgresSinkOptions): PostgresSink {
  return new PostgresSink(options)
}
