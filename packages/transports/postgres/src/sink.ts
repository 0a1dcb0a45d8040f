import { createHash } from 'node:crypto'
import type { OutboundEvent, Sink } from '@redrive/runtime'
import type { Pool } from 'pg'
import { explained } from './explain.ts'
import { outbox, type Outbox, toRow } from './outbox.ts'
import { rowsOf } from './query.ts'

export interface PostgresSinkOptions {
  /** Of the primary, never of a replica. The sink borrows a connection for each batch and ends none. */
  readonly pool: Pool
  /** The queue that consumers name too. */
  readonly queue: string
}

/** 500: as many as one statement carries without making anyone wait. */
const BATCH = 500

/** A row that is there already is the same event, sent before. */
const ADD_ONCE = `
insert into redrive.outbox (id, queue, type, lane, key, content_type, headers, payload)
select e.id, $1::text, e.type, nullif(e.lane, ''), e.key, e.content_type, coalesce(e.headers, '{}'),
  decode(e.payload, 'base64')
from jsonb_to_recordset($2::text::jsonb) as e (id uuid, type text, lane text, key text,
  content_type text, headers jsonb, payload text)
on conflict (id) do nothing`

/** A sink that adds to an outbox: accepted means committed. The same event sent twice is stored once. */
export class PostgresSink implements Sink {
  readonly name: string
  readonly batch: number = BATCH
  readonly #pool: Pool
  readonly #outbox: Outbox

  constructor({ pool, queue }: PostgresSinkOptions) {
    this.#pool = pool
    this.#outbox = outbox({ queue, pool })
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

  /** Answers from the table that events go to, on a server that writes. */
  async healthCheck({ signal }: { readonly signal: AbortSignal }): Promise<void> {
    await this.#inTime(ADD_ONCE, [this.#outbox.queue, '[]'], signal)
  }

  /** A statement cannot be called back; one that ends later than anyone waits does no harm, because it adds once. */
  async #inTime(text: string, values: readonly unknown[], signal: AbortSignal): Promise<void> {
    const { promise: aborted, reject } = Promise.withResolvers<never>()
    const onAbort = () => reject(signal.reason)
    signal.addEventListener('abort', onAbort, { once: true })
    try {
      await Promise.race([rowsOf(this.#pool, text, values), aborted])
    } catch (error) {
      throw explained(error)
    } finally {
      signal.removeEventListener('abort', onAbort)
    }
  }

  /** The pool is the caller's. */
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
 * The event's own id when it is a UUIDv7. Otherwise one made of its time and its id, the same whenever
 * it is made: a range of ids is a day of the outbox, and one that is elsewhere is never dropped with its day.
 */
function rowId(id: string, at: number): string {
  if (UUID_V7.test(id)) return id
  const time = Math.max(0, Math.floor(at)).toString(16).padStart(12, '0')
  const hash = createHash('sha256').update(id).digest('hex')
  const variant = (8 + (Number.parseInt(hash[3] ?? '0', 16) % 4)).toString(16)
  return `${time.slice(0, 8)}-${time.slice(8, 12)}-7${hash.slice(0, 3)}-${variant}${hash.slice(4, 7)}-${hash.slice(7, 19)}`
}

/** Adds events to an outbox, each once: for `relay` and the emitter of the runtime. */
export function postgresSink(options: PostgresSinkOptions): PostgresSink {
  return new PostgresSink(options)
}
