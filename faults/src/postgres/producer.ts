import { setTimeout as after } from 'node:timers/promises'
import { type Outbox, outbox } from '@redrive/postgres'
import type { Pool, PoolClient } from 'pg'
import type { HistoryWriter } from '../history.ts'
import { bodyOf, type PlannedMessage } from '../message.ts'
import type { Sending } from '../world.ts'

/** What a producer does with an event beside adding it. */
export interface PlannedEvent extends PlannedMessage {
  readonly lane?: string
  readonly delayMs?: number
  /** How long its transaction stays open after it was added. */
  readonly holdMs?: number
  /** Its transaction is rolled back at the end. */
  readonly isAborted?: boolean
}

export interface ProducerParts extends Sending {
  readonly pool: Pool
  readonly run: string
  readonly messages: readonly PlannedEvent[]
}

/** 200 ms until a server that refused is asked again. */
const BACK_OFF_MS = 200

/**
 * Adds every event once, in a transaction with its business fact, and writes down what the server said.
 * One whose answer never came is not sent again: the checker wants to know what became of it.
 */
export async function produce(parts: ProducerParts): Promise<void> {
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

/** Most transactions add one event, every fifth adds three; one with a plan of its own is alone. */
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

/** Patient: the server may be restarting. */
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
  { run, history }: ProducerParts,
): Promise<void> {
  for (const { id, kind } of events) history.write({ what: 'attempted', id, kind })
  // A connection that breaks while it is in use says so here as well as to whoever waits for an answer.
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
    tell(history, isAborted ? 'refused' : 'acknowledged', events)
    client.off('error', ignore)
    client.release()
    queue.wake()
  } catch (error) {
    // Without a commit it cannot be there; with one that was not answered, nobody knows.
    if (!isAsked) tell(history, 'refused', events)
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

function tell(
  history: HistoryWriter,
  what: 'acknowledged' | 'refused',
  events: readonly PlannedEvent[],
): void {
  for (const { id } of events) history.write({ what, id })
}
