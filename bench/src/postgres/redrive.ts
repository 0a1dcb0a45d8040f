import { business, type PolicyOptions } from '@redrive/core'
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

/** The queue's rows of the last hour. The time is in the id, so that older partitions are not read. */
const OWN = `queue = '${QUEUE}' and id >= redrive.uuid_floor(now() - interval '1 hour')`

export interface RedriveOptions {
  readonly policy: PolicyOptions
  readonly hasInbox?: true
  /** Of the connections it works with. */
  readonly pool?: PoolConfig
  readonly transport?: Omit<PostgresOptions, 'pool' | 'queue'>
}

/** `consume(postgres(…), handler, policy)`, paused between the samples. */
export const redrive =
  ({ policy, hasInbox, pool: poolOptions, transport }: RedriveOptions) =>
  async ({ database, handler }: Stage): Promise<Contender> => {
    const pool = poolOf(database.url, poolOptions)
    await migrate(pool)
    const inbox: Inbox<unknown> | undefined = hasInbox && postgresInbox({ pool })
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
        if (hasInbox) await database.pool.query('truncate redrive.event_handled')
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

/** Asks again and again, without a pause: this is about the last few milliseconds of a sample. */
async function pausedWhenWritten(consumer: Consumer, pool: Pool): Promise<void> {
  consumer.pause()
  const endsAt = performance.now() + PATIENCE_MS
  for (;;) {
    const { rows } = await pool.query<{ unfinished: boolean }>(UNFINISHED, [QUEUE])
    if (rows[0]?.unfinished === false) return
    if (performance.now() > endsAt) throw new Error('Redrive has not written all that it handled')
  }
}

/** The number in flight is the same from the first message on. */
export const FIXED: PolicyOptions = { limit: 'off' }

/** Nothing but the way of a failure: whatever would slow down or stop a consumer that only fails is off. */
const ONLY_FAILING: PolicyOptions = {
  breaker: 'off',
  outage: 'off',
  limit: 'off',
  budget: 'off',
  poison: 'off',
  flood: 'off',
}

/** Given up after one attempt, as it would be after any number of them. */
export const ONE_ATTEMPT: PolicyOptions = { ...ONLY_FAILING, retry: { attempts: 1 } }

/** The error is known to be final. Others have a signature made of their stack, which has to be read. */
export const FINAL_ERROR: PolicyOptions = { ...ONLY_FAILING, classify: [business(Declined)] }
