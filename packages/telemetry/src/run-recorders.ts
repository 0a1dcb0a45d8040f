import type { InstrumentedRun } from '@redrive/runtime/internal'
import { type Labels, LABEL_VALUES, type MetricName } from './metrics.ts'

/** Adds a value to one series. */
export type Recorder = (value: number) => void

/** Returns the recorder of a series. It appears with its first value. */
export type RecorderOf = (metric: MetricName, labels: Labels) => Recorder

/** Records the runs of one consumer. */
export interface RunRecorder {
  success(seconds: number, isAfterFailure: boolean): void
  failure(seconds: number): void
}

type Run = Pick<InstrumentedRun, 'handler' | 'system'> & {
  readonly delivery: Pick<InstrumentedRun['delivery'], 'source'>
}

/**
 * Keeps the recorders of runs. Making labels and finding a series takes microseconds, and most messages of a process
 * have the same labels.
 */
export class RunRecorders {
  readonly #recorderOf: RecorderOf
  readonly #kept = new Map<string, Map<string, Map<string, RunRecorder>>>()

  constructor(recorderOf: RecorderOf) {
    this.#recorderOf = recorderOf
  }

  of(run: Run): RunRecorder {
    const { delivery, handler, system } = run
    const { source } = delivery
    return this.#kept.get(source)?.get(handler)?.get(system) ?? this.#add(source, handler, system)
  }

  #add(source: string, handler: string, system: string): RunRecorder {
    const recorder = runRecorder(this.#recorderOf, { source, handler }, system)
    // As many as values of a label. A process has few consumers.
    if (this.#kept.size >= LABEL_VALUES && !this.#kept.has(source)) return recorder
    const ofSource = this.#kept.get(source) ?? new Map<string, Map<string, RunRecorder>>()
    const ofHandler = ofSource.get(handler) ?? new Map<string, RunRecorder>()
    this.#kept.set(source, ofSource.set(handler, ofHandler.set(system, recorder)))
    return recorder
  }
}

function runRecorder(recorderOf: RecorderOf, labels: Labels, system: string): RunRecorder {
  // A series must not appear before its first value, so each is looked up when it is needed.
  const once = (metric: MetricName, more: Labels = {}): Recorder => {
    let recorder: Recorder | undefined
    return (value) => {
      recorder ??= recorderOf(metric, { ...labels, ...more })
      recorder(value)
    }
  }
  const success = once('redrive.consumer.success')
  const retrySuccess = once('redrive.retry.success')
  const succeeded = once('redrive.process.duration', { system, result: 'success' })
  const failed = once('redrive.process.duration', { system, result: 'failure' })
  return {
    success(seconds, isAfterFailure) {
      succeeded(seconds)
      success(1)
      if (isAfterFailure) retrySuccess(1)
    },
    failure: failed,
  }
}
