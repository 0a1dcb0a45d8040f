import { type Duration, parseDuration, RedriveError } from '@redrive/core'
import { readOptions } from '@redrive/core/internal'
import type { Pool } from 'pg'
import { explained } from './explain.ts'
import { POOL, readQueue } from './options.ts'
import { type Queryable, rowsOf } from './queryable.ts'
import { WAKE_CHANNEL } from './notify.ts'
import { inSchema, readSchema } from './schema.ts'
import { ADD, NOTIFY } from './sql/outbox.ts'

/** An event that is published if and only if the transaction commits. */
export interface OutboxEvent {
  /** The body, stored as JSON; bytes are stored unchanged. */
  readonly body: unknown
  readonly type?: string
  /** Business idempotency key: two events with the same key have one effect. Default: the id of the event. */
  readonly key?: string
  /** The lane. Consumers with lane order handle events of one lane in the order they were added. */
  readonly lane?: string
  /** The content type. Default: `application/json`; `application/octet-stream` for bytes. */
  readonly contentType?: string
  /** Headers of the application, such as `traceparent`, CloudEvents attributes or a tenant. */
  readonly headers?: Readonly<Record<string, string>>
  /** Delay before the event is handled, starting when it is added. */
  readonly delay?: Duration
}

export interface OutboxOptions {
  /** The queue; consumers use the same name. */
  readonly queue: string
  /** Pool for the notification of `wake`. Never the connection of the transaction: NOTIFY would serialize commits. Default: none; consumers poll. */
  readonly pool?: Pool
  /** The schema of the outbox, as given to `migrate`. Default 'redrive'. */
  readonly schema?: string
}

export interface Outbox {
  readonly queue: string
  /** Adds the event in the caller's transaction and returns its id. With a pool, it uses a separate transaction. */
  add(tx: Queryable, event: OutboxEvent): Promise<string>
  /** Adds many events in one statement. Returns the ids in the order of the events. */
  addMany(tx: Queryable, events: readonly OutboxEvent[]): Promise<readonly string[]>
  /**
   * Notifies consumers through the `pool`. Call it after the commit. It is optional: without it, or when it is
   * lost, consumers poll within a second. Calls within 10 ms are combined.
   */
  wake(): void
}

/** 10 ms: combines the notifications of a burst without a noticeable delay. */
const WAKE_MS = 10

/** Creates the producer of a queue. */
export function outbox(options: OutboxOptions): Outbox {
  const { queue, pool, schema } = readOptions('outbox()', options, (top) => ({
    queue: readQueue(top),
    pool: top.ifGiven<Pool>('pool', POOL),
    schema: readSchema(top),
  }))
  const add = inSchema(ADD, schema)
  let timer: NodeJS.Timeout | undefined

  async function addMany(
    tx: Queryable,
    events: readonly OutboxEvent[],
  ): Promise<readonly string[]> {
    if (events.length === 0) return []
    const rows = JSON.stringify(events.map(toRow))
    try {
      return (await rowsOf<{ id: string }>(tx, add, [queue, rows])).map(({ id }) => id)
    } catch (error) {
      throw explained(error, schema)
    }
  }

  return {
    queue,
    addMany,
    async add(tx, event) {
      const [id] = await addMany(tx, [event])
      return id as string
    },
    wake() {
      if (pool === undefined) return
      timer ??= setTimeout(() => {
        timer = undefined
        // An error is ignored: a lost notification delays consumers by a second at most.
        pool.query(NOTIFY, [WAKE_CHANNEL, queue]).catch(() => undefined)
      }, WAKE_MS)
    },
  }
}

export interface OutboxRow {
  readonly type: string | undefined
  readonly lane: string | undefined
  readonly key: string | undefined
  readonly content_type: string
  readonly headers: Readonly<Record<string, string>>
  /** The payload in base64. */
  readonly payload: string
  readonly delay_ms: number | undefined
}

/** Characters that PostgreSQL cannot store in text. Its own error does not name the field. */
const UNSTORABLE = /\0|\p{Surrogate}/u

/** Converts an event to a row of the statement. Throws when PostgreSQL cannot store it. */
export function toRow(event: OutboxEvent): OutboxRow {
  const { body, type, key, lane, contentType, headers = {}, delay = 0 } = event
  const texts = [...Object.entries({ type, key, lane, contentType }), ...Object.entries(headers)]
  const isBinary = body instanceof Uint8Array
  const json = isBinary ? '' : (JSON.stringify(body) as string | undefined)
  const delayMs = parseDuration(delay)
  const problems = texts
    .filter(([name, value]) => UNSTORABLE.test(`${name}${value}`))
    .map(
      ([name]) =>
        `${name}: contains a character that PostgreSQL cannot store (NUL or half of a surrogate pair)`,
    )
  if (delayMs === undefined) problems.push(`delay: expected a duration such as '5s', got ${delay}`)
  if (json === undefined)
    problems.push('body: expected a JSON value or bytes, got a value that JSON.stringify omits')
  if (problems.length > 0) throw invalid(problems.join('; '))
  return {
    type,
    lane,
    key,
    content_type: contentType ?? (isBinary ? 'application/octet-stream' : 'application/json'),
    headers,
    payload: (isBinary ? bufferOf(body) : Buffer.from(json ?? '')).toString('base64'),
    delay_ms: delayMs,
  }
}

const bufferOf = ({ buffer, byteOffset, byteLength }: Uint8Array) =>
  Buffer.from(buffer, byteOffset, byteLength)

const invalid = (message: string) => new RedriveError('POLICY_INVALID', message)
