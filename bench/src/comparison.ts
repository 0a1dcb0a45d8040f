import type { Gauge } from './gauge.ts'
import { type Candidate, type Measurement, type MeasureOptions, measure } from './harness.ts'
import {
  checkSelf,
  type Goal,
  judge,
  type SelfCheck,
  type SelfCheckRange,
  type Verdict,
} from './verdict.ts'

/** Candidates that do the same work and are measured together. */
export interface Comparison {
  /** Name in the verdict line: `core.success`. */
  readonly name: string
  readonly summary: string
  readonly candidates: readonly Candidate[]
  /** The candidate used as the base of the table's ratio columns. */
  readonly baseline: string
  readonly options: MeasureOptions
  readonly selfCheck: SelfCheckRange
  readonly goals: readonly Goal[]
}

/** The export `bench` of a file in `cases/`. */
export interface BenchCase {
  readonly summary: string
  /** Opened one at a time, so that a comparison has its connections only during its turn. */
  readonly comparisons: readonly ((overrides: Overrides) => Promise<Comparison> | Comparison)[]
  /** Run after the comparisons, one at a time. */
  readonly gauges?: readonly OpenGauge[]
  /** Gauges that `--only` selects. Some do not run without it, because they take too long. */
  readonly only?: {
    readonly names: readonly string[]
    readonly open: (name: string) => OpenGauge | undefined
  }
}

export type OpenGauge = (overrides: Overrides) => Promise<Gauge>

export interface Overrides {
  readonly rounds?: number | undefined
  readonly seed?: number | undefined
  /** Duration of gauges that measure over a time. */
  readonly minutes?: number | undefined
  readonly quick: boolean
}

export interface Compared {
  readonly comparison: Comparison
  readonly options: MeasureOptions
  readonly measurement: Measurement
  readonly selfChecks: readonly SelfCheck[]
  readonly verdicts: readonly Verdict[]
}

/** Shows that a benchmark works and its approximate result. Its intervals are too wide to quote. */
const QUICK_SHARE = 1 / 6
const QUICK_LEAST_ROUNDS = 9

export async function compare(comparison: Comparison, overrides: Overrides): Promise<Compared> {
  const options = overridden(comparison.options, overrides)
  const measurement = await measure(comparison.candidates, options)
  const { goals, selfCheck } = comparison
  return {
    comparison,
    options,
    measurement,
    selfChecks: [
      checkSelf(measurement, 'wallNs', selfCheck),
      checkSelf(measurement, 'cpuNs', selfCheck),
    ],
    verdicts: goals.map((goal) => judge(measurement, goal, selfCheck)),
  }
}

function overridden(options: MeasureOptions, { rounds, seed, quick }: Overrides): MeasureOptions {
  const fewer = Math.max(QUICK_LEAST_ROUNDS, Math.round(options.rounds * QUICK_SHARE))
  return {
    ...options,
    rounds: rounds ?? (quick ? Math.min(fewer, options.rounds) : options.rounds),
    seed: seed ?? options.seed,
  }
}
