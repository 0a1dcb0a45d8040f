// A series after its measurement: the fit and the verdict. Pure.
import { seededRandom } from '@redrive/testing'
import type { GaugeVerdict, Limit } from '../gauge.ts'
import type { Estimate } from '../stats.ts'
import { exponentOf, type Fit, fitGrowth, judgeGrowth, mediansOf, type Sized } from './fit.ts'
import type { Series } from './subject.ts'

/** Fixed, so that the same measurements have the same interval. */
const BOOTSTRAP_SEED = 20_260_101

/** A measured and judged series. */
export interface Result {
  readonly series: Series
  readonly sized: readonly Sized[]
  readonly fit: Fit
  readonly exponent: Estimate
  readonly verdict: GaugeVerdict
}

export function resultOf(series: Series, sized: readonly Sized[]): Result {
  const fit = fitGrowth(mediansOf(sized))
  const exponent = exponentOf(sized, seededRandom(BOOTSTRAP_SEED))
  const limit: Limit = { name: `${series.name}.exponent`, unit: '', below: series.bound }
  return { series, sized, fit, exponent, verdict: judgeGrowth(limit, exponent) }
}
