import { type InstrumentedRun, instrumentRuns, watchAll } from '@redrive/runtime/internal'
import { BoundedLabels } from './bounded-labels.ts'
import { measure } from './from-events.ts'
import { readState } from './from-state.ts'
import type { Measurement } from './metrics.ts'
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

/** Passes each measurement of an event or a run to `record`: the value is an addition to its series. */
export function observe(
  record: (measurement: Measurement) => void,
  around: AroundRun = runOnly,
): Observation {
  const labels = new BoundedLabels()
  const totals = new StateTotals()
  const bounded = ({ labels: raw, ...rest }: Measurement) => ({
    ...rest,
    labels: labels.bound(raw),
  })
  const recordAll = (all: readonly Measurement[]) => {
    for (const one of all) record(bounded(one))
  }
  const ends = [
    watchAll((event) => recordAll(measure(event))),
    instrumentRuns((info, run) => {
      const startedAt = performance.now()
      const { result, onEnd } = around(info, () => settle(run))
      const onResult = (error?: { readonly cause: unknown }) => {
        const durationMs = performance.now() - startedAt
        recordAll(measureRun(info, durationMs, error === undefined))
        onEnd({ durationMs, ...(error === undefined ? {} : { error }) })
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

function measureRun(
  { delivery, failures, handler, system }: InstrumentedRun,
  durationMs: number,
  isSuccess: boolean,
): readonly Measurement[] {
  const labels = { source: delivery.source, handler }
  const result = isSuccess ? 'success' : 'failure'
  const duration: Measurement = {
    metric: 'redrive.process.duration',
    value: durationMs / 1_000,
    labels: { ...labels, system, result },
  }
  if (!isSuccess) return [duration]
  const success: Measurement = { metric: 'redrive.consumer.success', value: 1, labels }
  if (failures.runs === 0) return [duration, success]
  return [duration, success, { metric: 'redrive.retry.success', value: 1, labels }]
}
