import { type JobResult, PgBoss } from 'pg-boss'
import type { Handler } from '../handlers.ts'
import { BODY } from './body.ts'
import type { Contender, Fate, Stage } from './contender.ts'
import { STAYING } from './database.ts'

const QUEUE = 'messages'
const BATCH = 500

const FILL = `
  insert into pgboss.job (name, data, retry_limit, policy)
  select '${QUEUE}', $1::jsonb, 0, 'standard' from generate_series(1, $2)`

/** Fetches again immediately while batches are full; maintenance and schedules are off. */
export async function pgBoss({ database, handler, fate }: Stage): Promise<Contender> {
  // It passes all options to its pool, but its types do not contain them.
  const connections = { connectionString: database.url, ...STAYING }
  const boss = new PgBoss({ ...connections, schedule: false, supervise: false })
  boss.on('error', fail)
  await boss.start()
  await boss.createQueue(QUEUE)
  return {
    table: 'pgboss.job',
    rows: { done: "state = 'completed'", failed: "state = 'failed' and output is not null" },
    async fill(count) {
      await database.pool.query(FILL, [BODY, count])
    },
    start: () => work[fate](boss, handler),
    stop: () => boss.offWork(QUEUE, { wait: true }),
    close: () => boss.stop(),
  }
}

const OPTIONS = { batchSize: BATCH, burstWhenBatchFull: true } as const

const work: Readonly<Record<Fate, (boss: PgBoss, handler: Handler) => Promise<void>>> = {
  async done(boss, handler) {
    await boss.work(QUEUE, OPTIONS, async (jobs) => {
      await Promise.all(jobs.map(() => handler()))
    })
  },
  // Fails each job with a separate error, as for all candidates. A thrown error would fail the whole
  // batch.
  async failed(boss, handler) {
    await boss.work(QUEUE, { ...OPTIONS, perJobResults: true }, (jobs) =>
      Promise.all(jobs.map(({ id }) => outcome(id, handler))),
    )
  },
}

async function outcome(id: string, handler: Handler): Promise<JobResult> {
  try {
    await handler()
    return { id, status: 'completed' }
  } catch (error) {
    return { id, status: 'failed', output: error as Error }
  }
}

function fail(error: Error): never {
  throw error
}
