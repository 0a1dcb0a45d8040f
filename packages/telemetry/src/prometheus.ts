import {
  type Label,
  type Labels,
  type Measurement,
  METRIC_NAMES,
  type MetricName,
  type MetricRow,
  rowOf,
} from './metrics.ts'
import { observe } from './observe.ts'
import type { Recorder } from './run-recorders.ts'
import { seriesKey } from './state-totals.ts'

/** The metrics of this process in the text format of Prometheus. */
export interface PrometheusMetrics {
  /** Value of the header `content-type`. */
  readonly contentType: string
  /** Returns all metrics. Call it for each request to `/metrics`. */
  text(): string
  /** Stops the observation of consumers and emitters. */
  close(): void
}

/** A series of a histogram. */
interface Distribution {
  readonly counts: number[]
  count: number
  sum: number
}

interface Series {
  readonly measurement: Measurement
  value: number
  readonly distribution: Distribution | undefined
}

/**
 * Observes all consumers and emitters of this process and returns their metrics for Prometheus. Call it
 * once, before the first consumer starts. It needs no other package.
 */
export function prometheus(): PrometheusMetrics {
  const series = new Map<string, Series>()
  const observation = observe((metric, labels) => recorderOf(series, metric, labels))
  return {
    contentType: 'text/plain; version=0.0.4; charset=utf-8',
    text: () => exposition([...series.values(), ...observation.collect().map(asSeries)]),
    close: () => observation.close(),
  }
}

const asSeries = (measurement: Measurement): Series => ({
  measurement,
  value: measurement.value,
  distribution: undefined,
})

function recorderOf(series: Map<string, Series>, metric: MetricName, labels: Labels): Recorder {
  const measurement: Measurement = { metric, labels, value: 0 }
  const key = seriesKey(measurement)
  const found = series.get(key) ?? newSeries(measurement)
  series.set(key, found)
  const { distribution } = found
  if (distribution !== undefined) {
    const { buckets = [] } = rowOf(metric)
    return (value) => addTo(distribution, buckets, value)
  }
  return (value) => {
    found.value += value
  }
}

function newSeries(measurement: Measurement): Series {
  const { kind, buckets = [] } = rowOf(measurement.metric)
  const distribution =
    kind === 'histogram' ? { counts: buckets.map(() => 0), count: 0, sum: 0 } : undefined
  return { measurement, value: 0, distribution }
}

function addTo(distribution: Distribution, buckets: readonly number[], value: number): void {
  distribution.count += 1
  distribution.sum += value
  const { counts } = distribution
  // From the largest bound down, because each count includes the smaller ones.
  for (let index = buckets.length - 1; index >= 0 && value <= (buckets[index] ?? 0); index--) {
    counts[index] = (counts[index] ?? 0) + 1
  }
}

function exposition(all: readonly Series[]): string {
  const lines = METRIC_NAMES.flatMap((metric) => {
    const own = all.filter(({ measurement }) => measurement.metric === metric)
    if (own.length === 0) return []
    const row = rowOf(metric)
    const { alias } = row
    return [
      ...family(prometheusName(metric), row, own, {}),
      ...(alias === undefined ? [] : family(alias.name, row, own, alias.labels)),
    ]
  })
  return `${lines.join('\n')}\n`
}

/** Returns the name in Prometheus: with the unit, and `_total` for counters. */
export function prometheusName(metric: MetricName): string {
  const { kind, unit } = rowOf(metric)
  const base = metric.replaceAll('.', '_')
  return `${base}${unit === 's' ? '_seconds' : ''}${kind === 'counter' ? '_total' : ''}`
}

function family(
  name: string,
  row: MetricRow,
  all: readonly Series[],
  renamed: Readonly<Partial<Record<Label, string>>>,
): readonly string[] {
  const labelsOf = ({ measurement }: Series): Pairs =>
    row.labels.map((label) => [renamed[label] ?? label, measurement.labels[label] ?? ''])
  return [
    `# HELP ${name} ${row.meaning}`,
    `# TYPE ${name} ${row.kind}`,
    ...all.flatMap((one) =>
      one.distribution === undefined
        ? [`${name}${braces(labelsOf(one))} ${one.value}`]
        : histogram(name, row, one.distribution, labelsOf(one)),
    ),
  ]
}

type Pairs = readonly (readonly [name: string, value: string])[]

function histogram(
  name: string,
  { buckets = [] }: MetricRow,
  { counts, count, sum }: Distribution,
  labels: Pairs,
): readonly string[] {
  const bucket = (bound: string, total: number | undefined) =>
    `${name}_bucket${braces([...labels, ['le', bound]])} ${total ?? 0}`
  return [
    ...buckets.map((bound, index) => bucket(String(bound), counts[index])),
    bucket('+Inf', count),
    `${name}_sum${braces(labels)} ${sum}`,
    `${name}_count${braces(labels)} ${count}`,
  ]
}

const braces = (labels: Pairs) =>
  labels.length === 0
    ? ''
    : `{${labels.map(([name, value]) => `${name}="${escaped(value)}"`).join(',')}}`

const escaped = (value: string) =>
  value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
