// How cost grows with size: a constant part, and a part that grows with a power of the size. Pure.
import type { Random } from '@redrive/core'
import type { GaugeVerdict, Limit } from '../gauge.ts'
import { type Estimate, median, type Point, quantile, slope } from '../stats.ts'

/** Repeated measurements at one size. */
export interface Sized {
  readonly size: number
  readonly costs: readonly number[]
}

export interface Fit {
  /** Exponent of the part that grows; 0 when no size has such a part that matters. */
  readonly exponent: number
  /** The part of the cost that does not depend on the size. */
  readonly constant: number
  /** Sizes that the exponent was fitted on. */
  readonly sizes: readonly number[]
}

/**
 * Half: from there on, the cost is twice the constant part. A smaller part is like the differences
 * between two runs on a busy machine, and its exponent is mostly noise.
 */
const MATTERS = 1 / 2
/** 5 %: below it, what remains after the constant part is noise, and its logarithm is arbitrary. */
const LEAST_REMAINDER = 0.05
/** Smaller constants are rounding errors. */
const NEGLIGIBLE = 1e-9
/** With two sizes, a constant part and an exponent cannot be separated. */
const LEAST_FOR_CONSTANT = 3
/** 0.05 to 4: a logarithm looks like 0.1 to 0.3 over three decades, and nothing here is worse than n^3. */
const EXPONENTS = Array.from({ length: 80 }, (_, step) => (step + 1) / 20)
/** 500 resamples: their interval moves by less than 0.02 between seeds. */
const RESAMPLES = 500
const CONFIDENCE = 0.95

interface Model {
  readonly constant: number
  readonly factor: number
  readonly exponent: number
}

const growing = ({ factor, exponent }: Model, size: number) => factor * size ** exponent

/**
 * Fits the exponent. First, cost = constant + factor * size^exponent is fitted to all sizes, to find
 * the constant part. Then it is subtracted, and the exponent is the least-squares slope of log cost
 * against log size over the sizes where the rest is half of the cost or more.
 *
 * Without the subtraction, a fixed offset would hide growth: 100 + n^2 looks flat up to n = 10. If
 * the cost of the smallest size was subtracted instead, growth would be invented: n - 1 is steeper
 * than n.
 */
export function fitGrowth(points: readonly Point[]): Fit {
  if (
    new Set(points.map(({ x }) => x)).size < 2 ||
    !points.every(({ x, y }) => x > 0 && y > 0 && Number.isFinite(y))
  ) {
    throw new RangeError('Growth needs two sizes or more, with costs above zero')
  }
  if (points.length < LEAST_FOR_CONSTANT) return overSizes(points, 0)
  const model = modelOf(points)
  const matters = ({ x }: Point) =>
    growing(model, x) >= MATTERS * (model.constant + growing(model, x))
  const used = points.filter(matters)
  if (used.length === 0) return { exponent: 0, constant: model.constant, sizes: [] }
  // One size has no slope. The one before it limits how fast the growth began.
  return overSizes(used.length === 1 ? points.slice(-2) : used, model.constant)
}

function overSizes(points: readonly Point[], constant: number): Fit {
  const logs = points.map(({ x, y }) => ({
    x: Math.log(x),
    y: Math.log(Math.max(y - constant, LEAST_REMAINDER * y)),
  }))
  return { exponent: slope(logs), constant, sizes: points.map(({ x }) => x) }
}

/** Returns the model with the smallest relative errors, so that small and large sizes count the same. */
function modelOf(points: readonly Point[]): Model {
  const models = EXPONENTS.map((exponent) => withExponent(points, exponent))
  const errors = models.map((model) => errorOf(points, model))
  const best = models[errors.indexOf(Math.min(...errors))]
  if (best === undefined) throw new RangeError('The costs are not numbers')
  return best
}

function errorOf(points: readonly Point[], model: Model): number {
  return sum(points.map(({ x, y }) => ((model.constant + growing(model, x)) / y - 1) ** 2))
}

/** Weighted least squares of both parts for one exponent. Neither part is negative. */
function withExponent(points: readonly Point[], exponent: number): Model {
  // Relative to the largest size, so that powers of ten million stay exact.
  const largest = Math.max(...points.map(({ x }) => x))
  const rows = points.map(({ x, y }) => ({ one: 1 / y, power: (x / largest) ** exponent / y }))
  const ones = sum(rows.map(({ one }) => one * one))
  const powers = sum(rows.map(({ power }) => power * power))
  const both = sum(rows.map(({ one, power }) => one * power))
  const one = sum(rows.map((row) => row.one))
  const power = sum(rows.map((row) => row.power))
  const divisor = ones * powers - both * both
  const constant = (one * powers - power * both) / divisor
  const factor = (power * ones - one * both) / divisor
  const scaled = (c: number, f: number) => ({
    constant: c,
    factor: f / largest ** exponent,
    exponent,
  })
  if (factor < 0) return scaled(one / ones, 0)
  const isNegligible = constant < NEGLIGIBLE * Math.min(...points.map(({ y }) => y))
  return isNegligible ? scaled(0, power / powers) : scaled(constant, factor)
}

const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0)

/** Returns the medians of the measurements, by size. */
export const mediansOf = (sized: readonly Sized[]): readonly Point[] =>
  sized.map(({ size, costs }) => ({ x: size, y: median(costs) }))

/**
 * Returns the exponent with the interval that contains 95 % of the exponents of resampled
 * measurements. Each size is resampled separately.
 */
export function exponentOf(sized: readonly Sized[], random: Random): Estimate {
  const drawn = ({ size, costs }: Sized): Sized => ({
    size,
    costs: costs.map(() => costs[Math.floor(random() * costs.length)] ?? Number.NaN),
  })
  const exponents = Array.from(
    { length: RESAMPLES },
    () => fitGrowth(mediansOf(sized.map(drawn))).exponent,
  )
  const tail = (1 - CONFIDENCE) / 2
  return {
    median: fitGrowth(mediansOf(sized)).exponent,
    low: quantile(exponents, tail),
    high: quantile(exponents, 1 - tail),
  }
}

/**
 * Judges an exponent. It is met when the whole interval is within the bound, and missed when the
 * whole interval is above it. Otherwise noise decides, and the run must be longer.
 */
export function judgeGrowth(limit: Limit, figure: Estimate): GaugeVerdict {
  if (figure.median <= limit.below && figure.high <= limit.below)
    return { kind: 'met', limit, figure }
  const isAbove = figure.median > limit.below && figure.low > limit.below
  return { kind: isAbove ? 'missed' : 'undecided', limit, figure }
}
