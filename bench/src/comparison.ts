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

/** Candidates that do the same work, measured together. */
export interface Comparison {
  /** For the verdict line: `core.success`. */
  readonly name: string
  readonly summary: string
  readonly candidates: readonly Candidate[]
  /** The ratio columns of the table are against this candidate. */
  readonly baseline: string
  readonly options: MeasureOptions
  readonly selfCheck: SelfCheckRange
  readonly goals: readonly Goal[]
}

/** What a file in `cases/` exports as `bench`. */
export interface BenchCase {
  readonly summary: string
  /** Opened one at a time, so that what needs a connection can have it for its own turn only. */
  readonly comparisons: readonly ((overrides: Overrides) => Promise<Comparison> | Comparison)[]
  /** Run after the comparisons, one at a time. */
  readonly gauges?: readonly ((overrides: Overrides) => Promise<Gauge>)[]
}

export interface Overrides {
  readonly rounds?: number | undefined
  readonly seed?: number | undefined
  /** For what is measured over a stretch of time. */
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

/** Shows that a bench works and roughly what it says; its intervals are too wide to quote. */
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
