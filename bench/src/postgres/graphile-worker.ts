import { Logger, type Runner, run, runMigrations } from 'graphile-worker'
import { BODY } from './body.ts'
import type { Contender, Stage } from './contender.ts'
import { poolOf } from './database.ts'

const TASK = 'message'
const CONCURRENCY = 50
/**
 * Number of jobs it takes at a time. With it and without delays before marking, it is at its
 * fastest.
 */
const LOCAL_QUEUE = 500

const FILL = `
  select count(*) from graphile_worker.add_jobs(array (
    select ('${TASK}', $1::json, null, null, 1, null, null, null)::graphile_worker.job_spec
    from generate_series(1, $2)))`

/** Starts a runner for each sample, on connections that stay open. */
export async function graphileWorker({ database, handler }: Stage): Promise<Contender> {
  const pgPool = poolOf(database.url)
  // It logs each failure, so its log is discarded.
  const logger = new Logger(() => () => {})
  await runMigrations({ pgPool, logger })
  let runner: Runner | undefined
  return {
    table: 'graphile_worker._private_jobs',
    rows: { done: undefined, failed: 'attempts = max_attempts and last_error is not null' },
    async fill(count) {
      await database.pool.query(FILL, [BODY, count])
    },
    async start() {
      runner = await run({
        pgPool,
        logger,
        taskList: { [TASK]: () => handler() },
        concurrency: CONCURRENCY,
        noHandleSignals: true,
        preset: {
          worker: {
            localQueue: { size: LOCAL_QUEUE },
            completeJobBatchDelay: 0,
            failJobBatchDelay: 0,
          },
        },
      })
    },
    async stop() {
      await runner?.stop()
      runner = undefined
    },
    async close() {
      await runner?.stop()
      await pgPool.end()
    },
  }
}
