import { business, type PolicyOptions } from '@redrive/core'
import { GUARDS_OFF } from '@redrive/dev-support'
import { migrate, type PostgresOptions, postgres, postgresInbox } from '@redrive/postgres'
import { type Consumer, consume, type Inbox } from '@redrive/runtime'
import type { Pool, PoolConfig } from 'pg'
import { Declined } from '../handlers.ts'
import { PATIENCE_MS } from '../patience.ts'
import { BODY } from './body.ts'
import type { Contender, Stage } from './contender.ts'
import { poolOf } from './database.ts'

export const QUEUE = 'orders'
const CONCURRENCY = 100

const FILL = `
  insert into redrive.outbox (queue, content_type, payload)
  select '${QUEUE}', 'application/json', convert_to($1, 'UTF8') from generate_series(1, $2)`

/** The queue's rows of the last hour. The id contains the time, so older partitions are not read. */
const OWN = `queue = '${QUEUE}' and id >= redrive.uuid_floor(now() - interval '1 hour')`

export interface RedriveOptions {
  readonly policy: PolicyOptions
  /** Messages in a transaction of the inbox. Absent: without an inbox. */
  readonly inboxBatch?: number
  /** Options of its connections. */
  readonly pool?: PoolConfig
  readonly transport?: Omit<PostgresOptions, 'pool' | 'queue'>
}

/** Returns `consume(postgres(…), handler, policy)`, paused between the samples. */
export const redrive =
  ({ policy, inboxBatch, pool: poolOptions, transport }: RedriveOptions) =>
  async ({ database, handler }: Stage): Promise<Contender> => {
    const pool = poolOf(database.url, poolOptions)
    await migrate(pool)
    const inbox: Inbox<unknown> | undefined =
      inboxBatch === undefined ? undefined : postgresInbox({ pool, batch: inboxBatch })
    const consumer = await consume(postgres({ pool, queue: QUEUE, ...transport }), handler, {
      concurrency: CONCURRENCY,
      ...policy,
      ...(inbox && { inbox }),
    })
    consumer.pause()
    return {
      table: 'redrive.outbox',
      rows: {
        own: OWN,
        done: "status = 'delivered'",
        failed: "status = 'failed' and last_error is not null",
      },
      async fill(count) {
        if (inbox !== undefined) await database.pool.query('truncate redrive.event_handled')
        await database.pool.query(FILL, [BODY, count])
      },
      start: () => consumer.resume(),
      stop: () => pausedWhenWritten(consumer, database.pool),
      async close() {
        await consumer.stop()
        await pool.end()
      },
    }
  }

const UNFINISHED = `
  select exists (select from redrive.outbox where queue = $1 and due_at is not null) as unfinished`

/** Polls without a pause, because the last few milliseconds of a sample matter. */
async function pausedWhenWritten(consumer: Consumer, pool: Pool): Promise<void> {
  consumer.pause()
  const endsAt = performance.now() + PATIENCE_MS
  for (;;) {
    const { rows } = await pool.query<{ unfinished: boolean }>(UNFINISHED, [QUEUE])
    if (rows[0]?.unfinished === false) return
    if (performance.now() > endsAt)
      throw new Error('Redrive has not written the result of every handled message')
  }
}

/** The number in flight is the same from the first message on. */
export const FIXED: PolicyOptions = { adaptiveConcurrency: 'off' }

/** Dead-letters after one attempt, as after any number of them. */
export const ONE_ATTEMPT: PolicyOptions = { ...GUARDS_OFF, retry: { attempts: 1 } }

/**
 * The error is classified as final. Other errors need a signature made from their stack, which has
 * to be read.
 */
export const FINAL_ERROR: PolicyOptions = { ...GUARDS_OFF, classify: [business(Declined)] }
