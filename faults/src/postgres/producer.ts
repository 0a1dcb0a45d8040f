import { setTimeout as after } from 'node:timers/promises'
import { type Outbox, outbox } from '@redrive/postgres'
import type { Pool, PoolClient } from 'pg'
import type { HistoryWriter } from '../evidence/history.ts'
import { bodyOf, type PlannedMessage } from '../evidence/message.ts'
import type { Sending } from '../harness/world.ts'

/** An event and what its producer does in addition to adding it. */
export interface PlannedEvent extends PlannedMessage {
  readonly lane?: string
  readonly delayMs?: number
  /** How long its transaction stays open after the event was added. */
  readonly holdMs?: number
  /** Whether its transaction is rolled back at the end. */
  readonly isAborted?: boolean
}

export interface ProducerDeps extends Sending {
  readonly pool: Pool
  readonly run: string
  readonly messages: readonly PlannedEvent[]
}

/** 200 ms until the next request to a server that refused one. */
const BACK_OFF_MS = 200

/**
 * Adds every event once, in a transaction with its business fact, and records the server's
 * response. Events without a response are not sent again, because the checker must find out their
 * outcome.
 */
export async function produce(parts: ProducerDeps): Promise<void> {
  const { pool, messages, ratePerSecond } = parts
  const queue = outbox({ queue: parts.queue, pool })
  const startedAt = performance.now()
  const waiting = transactionsOf(messages).values()
  let taken = 0
  const worker = async () => {
    for (const events of waiting) {
      const dueInMs = (taken / ratePerSecond) * 1_000 - (performance.now() - startedAt)
      taken += events.length
      if (dueInMs > 0) await after(dueInMs)
      await commit(await connected(pool), queue, events, parts)
    }
  }
  await Promise.all(Array.from({ length: pool.options.max }, worker))
}

/**
 * Groups events into transactions. Most add one event, every fifth adds three. An event with
 * special options has its own transaction.
 */
function transactionsOf(events: readonly PlannedEvent[]): readonly (readonly PlannedEvent[])[] {
  const transactions: PlannedEvent[][] = []
  for (let next = 0; next < events.length; ) {
    const isSpecial = events[next]?.holdMs !== undefined || events[next]?.lane !== undefined
    const size = !isSpecial && transactions.length % 5 === 4 ? 3 : 1
    transactions.push(events.slice(next, next + size))
    next += size
  }
  return transactions
}

/** Connects with retries, because the server may be restarting. */
async function connected(pool: Pool): Promise<PoolClient> {
  for (;;) {
    try {
      return await pool.connect()
    } catch {
      await after(BACK_OFF_MS)
    }
  }
}

async function commit(
  client: PoolClient,
  queue: Outbox,
  events: readonly PlannedEvent[],
  { run, history }: ProducerDeps,
): Promise<void> {
  for (const { id, kind } of events) history.write({ what: 'attempted', id, kind })
  // A connection that breaks in use reports the error here and to the waiting query.
  const ignore = () => undefined
  client.on('error', ignore)
  let isAsked = false
  try {
    await client.query('begin')
    await addAll(client, queue, events, run)
    const [{ holdMs = 0, isAborted = false } = {}] = events
    if (holdMs > 0) await after(holdMs)
    isAsked = !isAborted
    await client.query(isAborted ? 'rollback' : 'commit')
    record(history, isAborted ? 'refused' : 'acknowledged', events)
    client.off('error', ignore)
    client.release()
    queue.wake()
  } catch (error) {
    // Without a commit the events cannot be stored. With a commit without a response, the outcome
    // is unknown.
    if (!isAsked) record(history, 'refused', events)
    client.release(error instanceof Error ? error : true)
    await after(BACK_OFF_MS)
  }
}

async function addAll(
  client: PoolClient,
  queue: Outbox,
  events: readonly PlannedEvent[],
  run: string,
): Promise<void> {
  const ids = events.map(({ id }) => id)
  await client.query('insert into faults_orders select $1, unnest($2::text[])', [run, ids])
  const added = events.map((event) => ({
    body: bodyOf(event),
    contentType: 'application/json',
    key: event.id,
    ...(event.lane === undefined ? {} : { lane: event.lane }),
    ...(event.delayMs === undefined ? {} : { delay: event.delayMs }),
  }))
  const [first] = added
  if (added.length === 1 && first !== undefined) await queue.add(client, first)
  else await queue.addMany(client, added)
}

function record(
  history: HistoryWriter,
  what: 'acknowledged' | 'refused',
  events: readonly PlannedEvent[],
): void {
  for (const { id } of events) history.write({ what, id })
}
