import { type InstrumentedRun, instrumentRuns, watchAll } from '@redrive/runtime/internal'
import { BoundedLabels } from './bounded-labels.ts'
import { measure } from './from-events.ts'
import { readState } from './from-state.ts'
import type { Measurement } from './metrics.ts'
import { type RecorderOf, RunRecorders } from './run-recorders.ts'
import { StateTotals } from './state-totals.ts'

/** A run of a handler that ended. */
export interface EndedRun {
  readonly durationMs: number
  /** The error that it threw; undefined when it succeeded. */
  readonly error?: { readonly cause: unknown }
}

/** Runs the handler, for example in a span. `onEnd` is called when it has ended. */
export type AroundRun = (
  info: InstrumentedRun,
  run: () => unknown,
) => { readonly result: unknown; readonly onEnd: (ended: EndedRun) => void }

/** The observation of the consumers and emitters of this process. */
export interface Observation {
  /** Returns the current state of the process: gauges, and counters with their totals. */
  collect(): readonly Measurement[]
  close(): void
}

/** Passes each value of an event or a run to the recorder of its series, which adds it. */
export function observe(recorderOf: RecorderOf, around: AroundRun = runOnly): Observation {
  const labels = new BoundedLabels()
  const totals = new StateTotals()
  const boundedRecorderOf: RecorderOf = (metric, raw) => recorderOf(metric, labels.bound(raw))
  const runs = new RunRecorders(boundedRecorderOf)
  const bounded = ({ labels: raw, ...rest }: Measurement) => ({
    ...rest,
    labels: labels.bound(raw),
  })
  const recordAll = (all: readonly Measurement[]) => {
    for (const { metric, value, labels: raw } of all) boundedRecorderOf(metric, raw)(value)
  }
  const ends = [
    watchAll((event) => recordAll(measure(event))),
    instrumentRuns((info, run) => {
      const isAfterFailure = info.failures.runs > 0
      const startedAt = performance.now()
      const { result, onEnd } = around(info, () => settle(run))
      const onResult = (error?: { readonly cause: unknown }) => {
        const durationMs = performance.now() - startedAt
        const recorder = runs.of(info)
        if (error === undefined) recorder.success(durationMs / 1_000, isAfterFailure)
        else recorder.failure(durationMs / 1_000)
        onEnd(error === undefined ? { durationMs } : { durationMs, error })
      }
      if (result instanceof Promise) {
        result.then(
          () => onResult(),
          (cause: unknown) => onResult({ cause }),
        )
      } else onResult()
      return result
    }),
  ]
  return {
    collect: () => totals.read(readState(Date.now())).map(bounded),
    close: () => {
      for (const end of ends) end()
    },
  }
}

const runOnly: AroundRun = (_, run) => ({ result: run(), onEnd: () => undefined })

/** An error that is thrown immediately becomes a rejection, so that every failed run ends in one way. */
function settle(run: () => unknown): unknown {
  try {
    return run()
  } catch (error) {
    return Promise.reject(error)
  }
}
