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

/** Judges a series, or only fits it if an error ended its measurement early. */
export function resultOf(series: Series, sized: readonly Sized[], failure?: string): Result {
  const fit = fitGrowth(mediansOf(sized))
  const exponent = exponentOf(sized, seededRandom(BOOTSTRAP_SEED))
  const judged = judgeGrowth(limitOf(series), exponent)
  const verdict = failure === undefined ? judged : unmeasured(series, failure)
  return { series, sized, fit, exponent, verdict }
}

export const unmeasured = (series: Series, why: string): GaugeVerdict => ({
  kind: 'unmeasured',
  limit: limitOf(series),
  why,
})

const limitOf = ({ name, bound }: Series): Limit => ({
  name: `${name}.exponent`,
  unit: '',
  below: bound,
})
