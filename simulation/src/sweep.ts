import { Worker } from 'node:worker_threads'
import type { Violation } from './check/evidence.ts'

export interface SweepOptions {
  readonly from: number
  readonly seeds: number
  readonly workers: number
  /** Whether to end with the first seed that breaks a promise. */
  readonly stopAtFirst: boolean
  readonly onProgress: (done: number, broken: number) => void
  /** Default 1,000. */
  readonly seedsPerWorker?: number
}

export interface BrokenSeed {
  readonly seed: number
  readonly violations: readonly Violation[]
}

export interface SweepResult {
  readonly done: number
  readonly broken: readonly BrokenSeed[]
}

/** The report of a worker after some seeds. */
export interface WorkerReport {
  readonly done: number
  readonly broken: readonly BrokenSeed[]
}

/**
 * 1,000 seeds for each worker, then the next one starts. A simulated process that crashes never releases its
 * consumer, which would slow down all later seeds of the worker.
 */
const SEEDS_PER_WORKER = 1_000

/** Plays seeds concurrently; each worker has its own share. */
export async function sweep(options: SweepOptions): Promise<SweepResult> {
  const { from, seeds, workers, stopAtFirst, onProgress } = options
  const { seedsPerWorker = SEEDS_PER_WORKER } = options
  const broken: BrokenSeed[] = []
  let done = 0
  const running = new Set<Worker>()
  const isOver = () => stopAtFirst && broken.length > 0
  const onReport = (report: WorkerReport) => {
    done += report.done
    broken.push(...report.broken)
    onProgress(done, broken.length)
    if (isOver()) for (const worker of running) void worker.terminate()
  }
  const playShare = async (index: number) => {
    const step = seedsPerWorker * workers
    const end = from + seeds
    for (let start = from + index; start < end && !isOver(); start += step) {
      const until = Math.min(start + step, end)
      const worker = startWorker({ from: start, until, stride: workers })
      running.add(worker)
      const exitCode = await finished(worker, onReport)
      running.delete(worker)
      if (exitCode !== 0 && !isOver())
        throw new Error(
          `The worker of seeds ${start} to ${until - 1} ended with exit code ${exitCode}.`,
        )
    }
  }
  try {
    await Promise.all(Array.from({ length: workers }, (_, index) => playShare(index)))
  } finally {
    for (const worker of running) void worker.terminate()
  }
  return { done, broken: broken.sort((a, b) => a.seed - b.seed) }
}

/** The seeds of a worker: every `stride`-th of a range. */
export interface WorkerSeeds {
  readonly from: number
  readonly until: number
  readonly stride: number
}

const startWorker = (workerData: WorkerSeeds): Worker =>
  new Worker(new URL('./worker.ts', import.meta.url), { workerData })

/** Returns the exit code of a worker. A run that never settles ends it early, with code 13. */
const finished = (worker: Worker, onReport: (report: WorkerReport) => void): Promise<number> =>
  new Promise((resolve, reject) => {
    worker.on('message', onReport)
    worker.on('error', reject)
    worker.on('exit', resolve)
  })
