import { type Duration, parseDuration, RedriveError } from '@redrive/core'
import { inTransaction, queryInTime } from '@redrive/postgres-internal'
import type { Pool, PoolClient } from 'pg'
import {
  DAYS_AHEAD,
  DELETE_CONFIRMATIONS_OF_OLD,
  MAINTENANCE_STEP,
  NO_TIMEOUT,
} from './sql/maintain.ts'
import { inSchema, schemaOf, type Tables } from './schema.ts'
import { RETAIN } from './sql/transport.ts'
import { runStatement } from './statement.ts'

export interface MaintainOptions {
  /**
   * The queue with this retention. It is stored until a later call changes it; rows of queues without a
   * stored retention are kept. Default: the durations apply to all queues without a stored retention.
   */
  readonly queue?: string
  /** How long delivered events are kept. */
  readonly deliveredRetention: Duration
  /** How long dead letters are kept. Operators must triage them within this time. */
  readonly deadLetterRetention: Duration
  /** The schema of the outbox. Default 'redrive'. */
  readonly schema?: string
}

export interface MaintenanceResult {
  /** Number of partitions created for the next days. */
  readonly partitionsCreated: number
  /** Number of partitions dropped, with all rows that are no longer needed. */
  readonly partitionsDropped: number
  /** Number of rows deleted where no partition could be dropped. */
  readonly rowsDeleted: number
  /**
   * Partitions that could not be created, detached or dropped now: another session held a lock, or the day has too
   * many rows that are needed. The next maintenance tries them again.
   */
  readonly skipped: readonly string[]
}

/** 10 minutes for one step: it may read a day of millions of rows, without a lock that others wait for. */
const STEP_MS = 600_000
/** A step holds no other sessions up, but it uses the disk: the next one waits as long as the last one took. */
const MAX_PAUSE_MS = 1_000

type Step = [done: string | null, subject: string | null, amount: string | null]

/**
 * Creates and drops partitions and deletes expired rows, in steps of one short transaction each. Consumers do this every
 * hour. Other calls that run at the same time do nothing.
 */
export async function maintain(
  pool: Pool,
  options: MaintainOptions,
  signal?: AbortSignal,
): Promise<MaintenanceResult> {
  const keep = retentionOf(options)
  const tables = { pool, schema: schemaOf('maintain()', options.schema) }
  const defaults = options.queue === undefined ? keep : [null, null]
  if (options.queue !== undefined) await runStatement(tables, RETAIN, [options.queue, ...keep])
  await runStatement(tables, DELETE_CONFIRMATIONS_OF_OLD, [])
  const count = { made: 0, dropped: 0, deleted: 0 }
  const skipped: string[] = []
  while (signal?.aborted !== true) {
    const startedAt = performance.now()
    const [done, subject, amount] = await runStep(tables, [...defaults, skipped])
    if (done === null) break
    if (done === 'skipped') skipped.push(subject ?? '')
    if (done === 'made' || done === 'dropped') count[done] += 1
    if (done === 'deleted') count.deleted += Number(amount)
    await pause(Math.min(MAX_PAUSE_MS, performance.now() - startedAt))
  }
  const { made, dropped, deleted } = count
  return { partitionsCreated: made, partitionsDropped: dropped, rowsDeleted: deleted, skipped }
}

/** 1 hour. */
const INTERVAL_MS = 3_600_000

/** Runs the maintenance now and every hour, until the signal aborts. */
export function maintainHourly(
  pool: Pool,
  options: MaintainOptions & Pick<Tables, 'schema'>,
  { signal, onError }: { readonly signal: AbortSignal; readonly onError: (error: unknown) => void },
): void {
  const run = () => {
    maintain(pool, options, signal)
      .then(({ skipped }) =>
        skipped.length > 0 ? verifyDaysAhead({ pool, schema: options.schema }) : undefined,
      )
      .catch((error: unknown) => {
        if (!signal.aborted) onError(error)
      })
  }
  run()
  const timer = setInterval(run, INTERVAL_MS).unref()
  signal.addEventListener('abort', () => clearInterval(timer))
}

/** 2 days: partitions are created a week ahead, so maintenance has failed for five days. */
const MIN_DAYS_AHEAD = 2

/** Throws when the partitions of the next days are missing. Their events would go to the default partition. */
async function verifyDaysAhead(tables: Tables): Promise<void> {
  const [[days] = ['8']] = await runStatement<[string]>(tables, DAYS_AHEAD, [])
  if (Number(days) > MIN_DAYS_AHEAD) return
  throw new RedriveError(
    'TOPOLOGY_MISMATCH',
    `The outbox has only ${Number(days) - 1} partitions for days after today. Later events would be stored in "outbox_default", which maintenance must empty row by row. Check that no session keeps a lock on the table "${tables.schema}.outbox", then run maintain().`,
  )
}

function retentionOf({ deliveredRetention, deadLetterRetention }: MaintainOptions) {
  const keep = [deliveredRetention, deadLetterRetention].map(parseDuration)
  if (!keep.includes(undefined)) return keep
  const message = `deliveredRetention and deadLetterRetention: expected durations such as '2d', got ${deliveredRetention} and ${deadLetterRetention}`
  throw new RedriveError('POLICY_INVALID', message)
}

async function runStep({ pool, schema }: Tables, values: readonly unknown[]): Promise<Step> {
  const work = async (client: PoolClient) => {
    await queryInTime(client, NO_TIMEOUT)
    const [step = [null, null, null]] = await queryInTime<Step>(
      client,
      inSchema(MAINTENANCE_STEP, schema),
      values,
      STEP_MS,
    )
    return step
  }
  return inTransaction(pool, work, { begin: 'begin isolation level read committed' })
}

const pause = (ms: number) =>
  new Promise<void>((resolve) => {
    setTimeout(resolve, ms).unref()
  })
