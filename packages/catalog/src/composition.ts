import { type Consumer, consume, type Message, type StopOptions } from '@redrive/runtime'
import { type Outbox, outbox, postgres } from '@redrive/postgres'
import type { Pool } from 'pg'
import {
  type BackgroundDeps,
  type BackgroundRole,
  type BackgroundSource,
  CHORES,
  JOBS_OF_ROLE,
  runChore,
  type JobFailure,
} from './background/chores.ts'
import type { Catalog } from './catalog.ts'
import { resolveIngest } from './ingest/options.ts'
import type { Alert, AlertLimits } from './metrics/metrics.ts'
import type { AutoReplayRun } from './replay/auto.ts'

export interface BackgroundOptions {
  readonly catalog: Catalog
  /** A pool of the database that has the catalog and the outbox, with at least 12 connections. */
  readonly pool: Pool
  readonly sources: readonly BackgroundSource[]
  /** Receives the active alerts once a minute, in each process. Default: none. */
  readonly onAlerts?: (alerts: readonly Alert[]) => Promise<void>
  readonly alertLimits?: AlertLimits
  /** Receives every failed background job. The job is retried. Without this callback, only counters show it. */
  readonly onJobFailure?: (failure: JobFailure) => void
  /** Called before each automatic replay run. If it rejects, the run does not start. Default: none. */
  readonly onAutoReplay?: (run: AutoReplayRun) => Promise<void>
  /** See `replayer()`. Default: none. */
  readonly restoreMarkerFile?: string
  /**
   * The jobs that this process runs. Each role has a separate queue, so a process never receives a job outside
   * its role. Together, your processes must cover all roles. Default `'all'`.
   */
  readonly role?: BackgroundRole
  /** The outbox queue for the jobs. Default 'redrive.catalog', or 'redrive.catalog.<role>' for one role. */
  readonly queue?: string
}

/** The running background jobs of the catalog. */
export interface Background {
  /** The consumer of the background jobs: it reports running, failed and retried jobs. */
  readonly consumer: Consumer
  /** Ends the time slices immediately, finishes started steps and returns the other jobs to the queue. */
  stop(options?: StopOptions): Promise<void>
}

const QUEUE = 'redrive.catalog'
const queueOf = (role: BackgroundRole) => (role === 'all' ? QUEUE : `${QUEUE}.${role}`)
/** 60 s: more than ten times a time slice. */
const TIMEOUT = '60s'
/** Two intervals: a job that waited longer was requested again since. */
const STALE_INTERVALS = 2

/**
 * Runs ingest, replay, retention and alerts on Redrive's runtime and outbox. Each process requests every job
 * at its interval, and any free process runs it. So two processes do twice the work. If a process crashes,
 * another one runs its job. A failed job is retried; after the last retry it is a dead letter of the queue.
 */
export async function startBackground(options: BackgroundOptions): Promise<Background> {
  const { catalog, pool, sources, restoreMarkerFile, role = 'all', queue = queueOf(role) } = options
  // Reports invalid ingest options here, once, and not every few seconds in a job.
  for (const { ingest, name, source } of sources) resolveIngest(ingest ?? {}, name ?? source.source)
  const jobs = JOBS_OF_ROLE[role]
  const replayer = catalog.replays.replayer({
    sources,
    ...(restoreMarkerFile === undefined ? {} : { restoreMarkerFile }),
  })
  const deps: BackgroundDeps = { ...options, replayer }
  const box = outbox({ queue, pool })
  // Aborts the current time slices on stop, so that stop() does not wait for their end.
  const stopping = new AbortController()
  const consumer = await consume<JobRequest>(
    postgres({ pool, queue, deliveredRetention: '1h' }),
    (message, { signal }) => work(deps, message, AbortSignal.any([signal, stopping.signal])),
    {
      name: queue,
      // The same for every role: one job that waits for an unresponsive broker must not block the other jobs.
      concurrency: Object.keys(CHORES).length,
      timeout: TIMEOUT,
      // A slow job does not mean overload, and a failing job must not stop the others.
      adaptiveConcurrency: 'off',
      breaker: 'off',
      outage: 'off',
    },
  )
  const timers = jobs.map((name) => requestRepeatedly(box, pool, name))
  return {
    consumer,
    async stop(stop) {
      for (const timer of timers) clearInterval(timer)
      stopping.abort()
      await consumer.stop(stop)
    },
  }
}

interface JobRequest {
  readonly at: number
}

async function work(
  deps: BackgroundDeps,
  { type = '', body }: Message<JobRequest>,
  signal: AbortSignal,
): Promise<void> {
  const job = CHORES[type]
  // A job of another release is ignored: processes of that release request it themselves.
  if (job === undefined || Date.now() - body.at > STALE_INTERVALS * job.everyMs) return
  await runChore(type, job, { ...deps, signal })
}

function requestRepeatedly(box: Outbox, pool: Pool, name: string): NodeJS.Timeout {
  const request = () => {
    const added = box.add(pool, { type: name, body: { at: Date.now() } })
    // If the database is unreachable now, the next interval requests the job again.
    added.then(() => box.wake()).catch(() => undefined)
  }
  request()
  return setInterval(request, CHORES[name]?.everyMs)
}
