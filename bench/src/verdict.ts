// The conclusions that a measurement allows. Pure: the same samples and seed give the same verdict.
import type { Measurement, Series } from './harness.ts'
import { seededRandom } from '@redrive/testing'
import { type Estimate, medianRatio } from './stats.ts'

export type Metric = 'wallNs' | 'cpuNs'

/** A limit: the candidate may cost at most `atMost` times what `against` costs. */
export interface Goal {
  /** One word for the verdict line: `redrive/cockatiel`. */
  readonly name: string
  readonly candidate: string
  readonly against: string
  readonly metric: Metric
  readonly atMost: number
  /** Whether it is only reported; missing it is not a failure. */
  readonly aim?: true
}

/** Converts a share of the throughput into a ratio of costs, which is its reciprocal. */
export const slowerBy = (leastThroughput: number): number => 1 / leastThroughput

/** The allowed ratio of a candidate to itself. Outside of it no other ratio is trusted. */
export interface SelfCheckRange {
  readonly low: number
  readonly high: number
  /** Why this width is right for this comparison. */
  readonly reason: string
}

export const GATE_5_PERCENT: SelfCheckRange = {
  low: 0.97,
  high: 1.03,
  reason: 'a 5 % gate cannot be judged when two runs of the same code differ by about as much',
}

export const GATE_3_PERCENT: SelfCheckRange = {
  low: 0.98,
  high: 1.02,
  reason: 'a 3 % gate cannot be judged when two runs of the same code differ by more',
}

export interface SelfCheck {
  readonly metric: Metric
  readonly ratio: Estimate
  readonly range: SelfCheckRange
  readonly passed: boolean
}

export type Verdict =
  | { readonly kind: 'met' | 'missed' | 'undecided'; readonly goal: Goal; readonly ratio: Estimate }
  | { readonly kind: 'noisy'; readonly goal: Goal; readonly selfCheck: SelfCheck }
  | { readonly kind: 'unmeasured'; readonly goal: Goal; readonly missing: string }

/** Fixed, so that two prints of the same samples show the same interval. */
const BOOTSTRAP_SEED = 20_260_101

export function ratioOf(left: Series, right: Series, metric: Metric): Estimate {
  return medianRatio(left[metric], right[metric], seededRandom(BOOTSTRAP_SEED))
}

export function checkSelf(
  { series, twin }: Measurement,
  metric: Metric,
  range: SelfCheckRange,
): SelfCheck {
  const original = find(series, twin.of)
  const again = find(series, twin.name)
  if (original === undefined || again === undefined) throw new Error('The A/A pair is missing')
  const ratio = ratioOf(again, original, metric)
  return { metric, ratio, range, passed: ratio.median >= range.low && ratio.median <= range.high }
}

/**
 * A goal is met when the whole interval is on its good side. If the median meets it while the
 * interval crosses it, the next run could differ. That is `undecided`.
 */
export function judge(measurement: Measurement, goal: Goal, range: SelfCheckRange): Verdict {
  const left = find(measurement.series, goal.candidate)
  const right = find(measurement.series, goal.against)
  if (left === undefined) return { kind: 'unmeasured', goal, missing: goal.candidate }
  if (right === undefined) return { kind: 'unmeasured', goal, missing: goal.against }
  const selfCheck = checkSelf(measurement, goal.metric, range)
  if (!selfCheck.passed) return { kind: 'noisy', goal, selfCheck }
  const ratio = ratioOf(left, right, goal.metric)
  if (ratio.high <= goal.atMost) return { kind: 'met', goal, ratio }
  return { kind: ratio.median <= goal.atMost ? 'undecided' : 'missed', goal, ratio }
}

/** Returns 0 when every goal is met, 1 otherwise; aims do not count. */
export function exitCode(verdicts: readonly Verdict[]): 0 | 1 {
  return verdicts.every(({ kind, goal }) => kind === 'met' || goal.aim) ? 0 : 1
}

function find(series: readonly Series[], name: string): Series | undefined {
  return series.find((each) => each.name === name)
}
