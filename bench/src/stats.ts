// Pure statistics: no clock, no I/O; randomness is an argument.

import type { Random } from '@redrive/core'

export interface Interval {
  readonly low: number
  readonly high: number
}

export interface Estimate extends Interval {
  readonly median: number
}

/** 2,000 resamples: between seeds, an end of the interval moves by 1 to 3 % of its width. */
const RESAMPLES = 2_000
const CONFIDENCE = 0.95

/** Returns a quantile with linear interpolation between the two nearest ranks; `portion` is 0..1. */
export function quantile(values: readonly number[], portion: number): number {
  return quantileOfSorted(Float64Array.from(values).sort(), portion)
}

export function median(values: readonly number[]): number {
  return quantile(values, 0.5)
}

/**
 * Returns the median over rounds of `left[i] / right[i]`, with the percentile bootstrap of that
 * median.
 *
 * Both sides of a pair ran within the same second, so a disturbance of the machine mostly affected
 * both. The ratio of two separate medians would lose that. It is computed on logarithms, so that
 * left/right and right/left are exact reciprocals, for an even number of rounds too.
 */
export function medianRatio(
  left: readonly number[],
  right: readonly number[],
  random: Random,
): Estimate {
  const logs = left.map((value, round) => Math.log(value / at(right, round)))
  if (logs.length !== right.length || !logs.every(Number.isFinite)) {
    throw new RangeError('A ratio needs as many left as right samples, all above zero')
  }
  const interval = bootstrapMedian(logs, random)
  return {
    median: Math.exp(median(logs)),
    low: Math.exp(interval.low),
    high: Math.exp(interval.high),
  }
}

/** Percentile bootstrap: returns the interval that contains 95 % of the medians of resampled values. */
export function bootstrapMedian(values: readonly number[], random: Random): Interval {
  const medians = new Float64Array(RESAMPLES)
  const resample = new Float64Array(values.length)
  for (let draw = 0; draw < RESAMPLES; draw += 1) {
    for (let slot = 0; slot < resample.length; slot += 1) {
      resample[slot] = at(values, Math.floor(random() * values.length))
    }
    medians[draw] = quantileOfSorted(resample.sort(), 0.5)
  }
  medians.sort()
  const tail = (1 - CONFIDENCE) / 2
  return { low: quantileOfSorted(medians, tail), high: quantileOfSorted(medians, 1 - tail) }
}

/**
 * Returns a statistic with its percentile bootstrap, which resamples whole blocks. Values measured
 * close together share a disturbance, so they should share a block.
 */
export function bootstrap<T>(
  blocks: readonly T[],
  statistic: (blocks: readonly T[]) => number,
  random: Random,
  resamples: number,
): Estimate {
  const drawn = Float64Array.from({ length: resamples }, () =>
    statistic(blocks.map(() => at(blocks, Math.floor(random() * blocks.length)))),
  ).sort()
  const tail = (1 - CONFIDENCE) / 2
  return {
    median: statistic(blocks),
    low: quantileOfSorted(drawn, tail),
    high: quantileOfSorted(drawn, 1 - tail),
  }
}

export interface Point {
  readonly x: number
  readonly y: number
}

/** Returns the slope of the least-squares line; NaN when all points have the same x. */
export function slope(points: readonly Point[]): number {
  const meanX = mean(points.map(({ x }) => x))
  const meanY = mean(points.map(({ y }) => y))
  const covariance = mean(points.map(({ x, y }) => (x - meanX) * (y - meanY)))
  return covariance / mean(points.map(({ x }) => (x - meanX) ** 2))
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length
}

function quantileOfSorted(sorted: Float64Array, portion: number): number {
  const rank = (sorted.length - 1) * portion
  const below = at(sorted, Math.floor(rank))
  const above = at(sorted, Math.ceil(rank))
  return below + (above - below) * (rank - Math.floor(rank))
}

function at<T>(values: ArrayLike<T>, index: number): T {
  const value = values[index]
  if (value === undefined) throw new RangeError(`No value at ${index} of ${values.length}`)
  return value
}
