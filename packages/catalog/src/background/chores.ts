import { setTimeout as after } from 'node:timers/promises'
import type { Catalog } from '../catalog.ts'
import type { IngestResult } from '../ingest/ingest.ts'
import type { IngestOptions } from '../ingest/options.ts'
import type { AutoReplayRun } from '../replay/auto.ts'
import type { Replayer, ReplaySource } from '../replay/publish/replayer.ts'
import { runAll } from '../run-all.ts'
import { type Alert, type AlertLimits, alertsOf } from '../metrics/metrics.ts'

/** A source for background ingest and replay. */
export interface BackgroundSource extends ReplaySource {
  /** Ingest options of this source. Default: the defaults of `ingest()`. */
  readonly ingest?: Omit<IngestOptions, 'name' | 'signal'>
}

export interface BackgroundDeps {
  readonly catalog: Catalog
  readonly sources: readonly BackgroundSource[]
  readonly replayer: Replayer
  /** Receives the active alerts once a minute, also when there are none. */
  readonly onAlerts?: (alerts: readonly Alert[]) => Promise<void>
  readonly alertLimits?: AlertLimits
  readonly onJobFailure?: (failure: JobFailure) => void
  readonly onAutoReplay?: (run: AutoReplayRun) => Promise<void>
}

/** A failed background job. It is retried. */
export interface JobFailure {
  readonly job: string
  /** Undefined: the job is not for a single source. */
  readonly source: string | undefined
  readonly error: unknown
}

/** One kind of background job. It runs separately for each source, or once for all sources. */
export type BackgroundJob = {
  /** The interval at which each process requests the job. */
  readonly everyMs: number
} & (
  | { readonly runFor: (one: BackgroundSource, context: JobContext) => Promise<unknown> }
  | { readonly run: (context: JobContext) => Promise<unknown> }
)

interface JobContext extends BackgroundDeps {
  readonly signal: AbortSignal
}

/** 5 s: the time slice of a job that never finishes. Then the job is requested again. */
const TIME_SLICE_MS = 5_000
/** 100 ms between two polls while there is nothing to do. An approved run starts within this time. */
const IDLE_MS = 100
/** 20 ms while confirmations arrive. They limit the speed of a run, because few items may be unconfirmed. */
const BUSY_MS = 20
/** 1 s: overdue items have waited for minutes, and marking a run as done or reading set-aside messages is not urgent. */
const SWEEP_MS = 1_000
/** 500 ms: the delay between a failure and its dead letter in the catalog, roughly. */
const INGEST_MS = 500

/** Two: while one waits for an unresponsive broker, the other publishes the runs of other sources. */
const PUBLISHERS = [1, 2]

/** All background jobs. Each can run in several processes at the same time, which makes it scale. */
export const CHORES: Readonly<Record<string, BackgroundJob>> = {
  ingest: {
    everyMs: TIME_SLICE_MS,
    runFor: (one, { catalog, signal }) =>
      runTimeSlice(signal, async () =>
        isBusy(await ingestOne(catalog, one, signal)) ? true : INGEST_MS,
      ),
  },
  publish: {
    everyMs: TIME_SLICE_MS,
    run: ({ replayer, signal }) =>
      runAll(PUBLISHERS, () => runTimeSlice(signal, createPublishStep(replayer, signal))),
  },
  settle: {
    everyMs: TIME_SLICE_MS,
    runFor: (one, { replayer, signal }) =>
      runTimeSlice(signal, createSettleStep(replayer, nameOf(one))),
  },
  upkeep: {
    everyMs: 3_600_000,
    run: ({ catalog }) => catalog.maintain(),
  },
  watch: {
    everyMs: 60_000,
    run: async ({ catalog, onAlerts, alertLimits }) => {
      if (onAlerts === undefined) return
      // Also without alerts: the receiver then reports the end of earlier ones.
      await onAlerts(alertsOf(await catalog.counts(), alertLimits))
    },
  },
  replay_set_aside: {
    everyMs: TIME_SLICE_MS,
    runFor: (one, { replayer, signal }) =>
      runTimeSlice(signal, async () =>
        (await replayer.publishSetAside(nameOf(one))) ? true : SWEEP_MS,
      ),
  },
  auto_replay: {
    everyMs: 30_000,
    run: ({ catalog, sources, onAutoReplay }) => catalog.replays.autoReplay(sources, onAutoReplay),
  },
}

/** Runs a job. Reports a failure and then rejects. A failing source does not stop the job for other sources. */
export async function runChore(
  name: string,
  job: BackgroundJob,
  context: JobContext,
): Promise<void> {
  const runReported = async (source: string | undefined, work: () => Promise<unknown>) => {
    try {
      await work()
    } catch (error) {
      context.onJobFailure?.({ job: name, source, error })
      throw error
    }
  }
  if ('run' in job) return runReported(undefined, () => job.run(context))
  await runAll(context.sources, (one) => runReported(nameOf(one), () => job.runFor(one, context)))
}

const nameOf = (one: BackgroundSource) => one.name ?? one.source.source

/** The jobs of each role. A process with a role runs only the jobs of this role. */
export const JOBS_OF_ROLE: Readonly<Record<BackgroundRole, readonly string[]>> = {
  all: Object.keys(CHORES),
  ingest: ['ingest'],
  replay: ['publish', 'settle', 'replay_set_aside', 'auto_replay'],
  watch: ['upkeep', 'watch'],
}
export type BackgroundRole = 'all' | 'ingest' | 'replay' | 'watch'

const createPublishStep =
  (replayer: Replayer, signal: AbortSignal) => async (): Promise<true | number> =>
    (await replayer.turn(signal)) === undefined ? IDLE_MS : true

function createSettleStep(replayer: Replayer, name: string): () => Promise<number> {
  let sweepAt = 0
  return async () => {
    if (performance.now() >= sweepAt) {
      sweepAt = performance.now() + SWEEP_MS
      await replayer.sweep(name)
    }
    const { resolved, expired } = await replayer.confirm(name)
    return resolved + expired > 0 ? BUSY_MS : IDLE_MS
  }
}

const ingestOne = (catalog: Catalog, one: BackgroundSource, signal: AbortSignal) =>
  catalog.ingest(one.source, {
    ...one.ingest,
    ...(one.name === undefined ? {} : { name: one.name }),
    signal,
  })

const isBusy = ({ added, failedAgain, known, setAside }: IngestResult) =>
  added + failedAgain + known + setAside > 0

/** Repeats `step` for one time slice. It returns the ms to wait, or true to continue immediately. */
async function runTimeSlice(
  signal: AbortSignal,
  step: () => Promise<true | number>,
): Promise<void> {
  const endsAt = performance.now() + TIME_SLICE_MS
  while (!signal.aborted && performance.now() < endsAt) {
    const waitMs = await step()
    if (waitMs !== true) await pause(waitMs, signal)
  }
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return
  // The timer rejects on abort. The loop checks the signal itself.
  await after(ms, undefined, { signal }).catch(() => undefined)
}
