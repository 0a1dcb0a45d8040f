/** Builds queries of Prometheus from the tables of metrics, so that a renamed metric or label does not compile. */
import {
  type Label,
  METRIC_NAMES,
  type MetricName,
  rowOf,
} from '../../packages/telemetry/src/metrics.ts'
import { prometheusName } from '../../packages/telemetry/src/prometheus.ts'
import { OF_CATALOG, SERVER_LABELS, type ServerLabel, type ServerMetric } from './server-metrics.ts'

export type Metric = MetricName | ServerMetric
export type AnyLabel = Label | ServerLabel | 'le'

/** Variables that the reader of a dashboard chooses. A query contains a variable if its metric has it as a label. */
export type Variable = 'source' | 'handler' | 'sink' | 'dependency'

const isOfRuntime = (metric: Metric): metric is MetricName =>
  (METRIC_NAMES as readonly string[]).includes(metric)

const nameOf = (metric: Metric): string => (isOfRuntime(metric) ? prometheusName(metric) : metric)

export const labelsOf = (metric: Metric): readonly AnyLabel[] =>
  isOfRuntime(metric) ? rowOf(metric).labels : SERVER_LABELS[metric]

/** Queries of a dashboard with these variables. */
export interface Queries {
  /** The series of a metric that the variables select. */
  readonly series: (metric: Metric, more?: string) => string
  /** Changes of a counter per second. */
  readonly rate: (metric: Metric, by: readonly AnyLabel[], more?: string) => string
  /** Changes of a counter in the time that the dashboard shows. */
  readonly count: (metric: Metric, by: readonly AnyLabel[], more?: string) => string
  /** A gauge; of several processes their sum, the highest or the lowest. */
  readonly gauge: (how: 'sum' | 'max' | 'min', metric: Metric, by: readonly AnyLabel[]) => string
  readonly quantile: (q: number, metric: Metric, by: readonly AnyLabel[], more?: string) => string
}

export function queriesFor(variables: readonly Variable[]): Queries {
  const series = (metric: Metric, more = '', suffix = '') => {
    const chosen = variables.filter((name) => labelsOf(metric).includes(name))
    const matchers = [
      ...chosen.map((name) => `${name}=~"$${name}"`),
      ...(more === '' ? [] : [more]),
    ]
    return `${nameOf(metric)}${suffix}${matchers.length === 0 ? '' : `{${matchers.join(',')}}`}`
  }
  const over = (metric: Metric, by: readonly AnyLabel[], how: string, of: string) => {
    const unknown = by.filter((label) => label !== 'le' && !labelsOf(metric).includes(label))
    if (unknown.length > 0) throw new Error(`${metric} has no label ${unknown.join(', ')}`)
    const one =
      how === 'sum' && OF_CATALOG.has(metric)
        ? `max by (${labelsOf(metric).join(', ')}) (${of})`
        : of
    return by.length === 0 ? `${how}(${one})` : `${how} by (${by.join(', ')}) (${one})`
  }
  return {
    series,
    rate: (metric, by, more) =>
      over(metric, by, 'sum', `rate(${series(metric, more)}[$__rate_interval])`),
    count: (metric, by, more) =>
      over(metric, by, 'sum', `increase(${series(metric, more)}[$__range])`),
    gauge: (how, metric, by) => over(metric, by, how, series(metric)),
    quantile: (q, metric, by, more) => {
      const rates = `rate(${series(metric, more, '_bucket')}[$__rate_interval])`
      return `histogram_quantile(${q}, ${over(metric, ['le', ...by], 'sum', rates)})`
    },
  }
}
