import { type Duration, parseDuration, RedriveError } from '@redrive/core'
import type { Pool } from 'pg'
import { explained } from './explain.ts'
import { type Queryable, rowsOf } from './query.ts'
import { WAKE_CHANNEL } from './wake.ts'

/** What happened, to be told to others if and only if the transaction commits. */
export interface OutboxEvent {
  /** Kept as JSON, unless it is bytes, which are kept as they are. */
  readonly body: unknown
  readonly type?: string
  /** Business idempotency key: two events with the same one have one effect. Default: the event's id. */
  readonly key?: string
  /** Events of one lane are handled in the order they were added, by consumers that ask for it. */
  readonly lane?: string
  /** Default: `application/json`; `application/octet-stream` for bytes. */
  readonly contentType?: string
  /** Of the application: `traceparent`, CloudEvents attributes, tenant. */
  readonly headers?: Readonly<Record<string, string>>
  /** Not to be handled before, counted from when it is added. */
  readonly delay?: Duration
}

export interface OutboxOptions {
  /** The queue that consumers name too. */
  readonly queue: string
  /** Where `wake` sends its hint. Never the transaction's own connection: NOTIFY would make commits wait for each other. */
  readonly pool?: Pool
}

export interface Outbox {
  readonly queue: string
  /** Adds the event to the caller's transaction; a pool in its place is a transaction of its own. Answers the event's id. */
  add(tx: Queryable, event: OutboxEvent): Promise<string>
  /** The same for many, in one statement. Ids come in the order of the events. */
  addMany(tx: Queryable, events: readonly OutboxEvent[]): Promise<readonly string[]>
  /**
   * Tells consumers to look now, through the `pool`. Call it after the commit. Only a hint: without it, or
   * when it is lost, they look within a second. Calls that come together are sent as one.
   */
  wake(): void
}

/** One text parameter for any number of events: every driver can send that, and none changes it. */
const ADD = `
insert into redrive.outbox (queue, type, lane, key, content_type, headers, payload, due_at)
select $1::text, e.type, nullif(e.lane, ''), e.key, e.content_type, coalesce(e.headers, '{}'),
  decode(e.payload, 'base64'), clock_timestamp() + coalesce(e.delay_ms, 0) * interval '1 millisecond'
from jsonb_to_recordset($2::text::jsonb) as e (type text, lane text, key text, content_type text,
  headers jsonb, payload text, delay_ms double precision)
returning id`

/** 10 ms: hints of a burst become one, and no one waits noticeably longer. */
const WAKE_MS = 10

/** The producing side of a queue. */
export function outbox({ queue, pool }: OutboxOptions): Outbox {
  if (queue === '') throw invalid('queue: expected the name of the queue')
  let timer: NodeJS.Timeout | undefined

  async function addMany(
    tx: Queryable,
    events: readonly OutboxEvent[],
  ): Promise<readonly string[]> {
    if (events.length === 0) return []
    const rows = JSON.stringify(events.map(toRow))
    try {
      return (await rowsOf<{ id: string }>(tx, ADD, [queue, rows])).map(({ id }) => id)
    } catch (error) {
      throw explained(error)
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
        // A hint that does not arrive costs a second at most, and must not fail who gave it.
        pool.query('select pg_notify($1, $2)', [WAKE_CHANNEL, queue]).catch(() => undefined)
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
  /** In base64. */
  readonly payload: string
  readonly delay_ms: number | undefined
}

/** What PostgreSQL cannot keep in text, and would refuse in words that do not name the field. */
const UNSTORABLE = /\0|\p{Surrogate}/u

/** One event as the statement takes it. Refuses what PostgreSQL cannot store. */
export function toRow(event: OutboxEvent): OutboxRow {
  const { body, type, key, lane, contentType, headers = {}, delay = 0 } = event
  const texts = [...Object.entries({ type, key, lane, contentType }), ...Object.entries(headers)]
  const isBinary = body instanceof Uint8Array
  const json = isBinary ? '' : (JSON.stringify(body) as string | undefined)
  const delayMs = parseDuration(delay)
  const problems = texts
    .filter(([name, value]) => UNSTORABLE.test(`${name}${value}`))
    .map(([name]) => `${name}: has a character that PostgreSQL cannot store (NUL or half a pair)`)
  if (delayMs === undefined) problems.push(`delay: expected a duration such as '5s', got ${delay}`)
  if (json === undefined) problems.push('body: expected something that JSON can express, or bytes')
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
