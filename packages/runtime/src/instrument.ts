import type { Attempt } from './attempt.ts'
import type { Call } from './invoke.ts'

/** A run of a handler, as an instrument sees it. */
export interface InstrumentedRun extends Pick<Attempt, 'delivery' | 'failures'> {
  /** Name of the consumer. */
  readonly handler: string
  /** Name of the dependency that the handler calls. */
  readonly dependency: string
  /** Name of the broker, as OpenTelemetry writes it. */
  readonly system: string
  /** Writes the W3C `traceparent` of the run to the record of its failure. */
  setTrace(traceparent: string): void
}

/** Runs the handler. Calls `run` exactly once and returns what it returns. */
export type Instrument = (info: InstrumentedRun, run: () => unknown) => unknown

const instruments = new Set<Instrument>()

/** Wraps every run of a handler of this process, for example in a span. Returns a function that ends this. */
export function instrumentRuns(instrument: Instrument): () => void {
  instruments.add(instrument)
  return () => {
    instruments.delete(instrument)
  }
}

/** Passes each attempt through the instruments of the process. */
export function instrumented(
  call: Call,
  names: Pick<InstrumentedRun, 'handler' | 'dependency' | 'system'>,
): Call {
  return (attempt) => {
    if (instruments.size === 0) return call(attempt)
    const { delivery, failures } = attempt
    const setTrace = (traceparent: string) => {
      attempt.trace = traceparent
    }
    const info = { delivery, failures, ...names, setTrace }
    let run = (): unknown => call(attempt)
    for (const instrument of instruments) {
      const inner = run
      run = () => instrument(info, inner)
    }
    return run()
  }
}
