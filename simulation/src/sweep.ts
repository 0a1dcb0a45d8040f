import { Worker } from 'node:worker_threads'
import type { Violation } from './check/evidence.ts'

export interface SweepOptions {
  readonly from: number
  readonly seeds: number
  readonly workers: number
  /** Whether to end with the first seed that breaks a promise. */
  readonly stopAtFirst: boolean
  readonly onProgress: (done: number) => void
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

/** Plays seeds concurrently; each worker has its own share. */
export async function sweep(options: SweepOptions): Promise<SweepResult> {
  const broken: BrokenSeed[] = []
  let done = 0
  const workers = Array.from({ length: options.workers }, (_, index) => startWorker(options, index))
  const finished = workers.map(
    (worker) =>
      new Promise<void>((resolve, reject) => {
        worker.on('message', (report: WorkerReport) => {
          done += report.done
          broken.push(...report.broken)
          options.onProgress(done)
          if (options.stopAtFirst && broken.length > 0)
            for (const one of workers) void one.terminate()
        })
        worker.on('error', reject)
        worker.on('exit', () => resolve())
      }),
  )
  await Promise.all(finished)
  return { done, broken: broken.sort((a, b) => a.seed - b.seed) }
}

function startWorker({ from, seeds, workers }: SweepOptions, index: number): Worker {
  return new Worker(new URL('./worker.ts', import.meta.url), {
    workerData: { from: from + index, until: from + seeds, stride: workers },
  })
}
