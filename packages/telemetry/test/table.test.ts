import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { isFromState, METRIC_NAMES, METRICS } from '../src/metrics.ts'
import { prometheusName } from '../src/prometheus.ts'

const textOf = (name: string) => readFileSync(new URL(`../src/${name}.ts`, import.meta.url), 'utf8')

const sources = ['from-events', 'from-state', 'run-recorders'].map(textOf)

it('every metric of the table has a source', () => {
  const missing = METRIC_NAMES.filter((name) => !sources.some((text) => text.includes(`'${name}'`)))
  expect(missing).toEqual([])
})

it('a metric that is read from the state is declared so, or OpenTelemetry would not export it', () => {
  const text = textOf('from-state')
  const read = METRIC_NAMES.filter((name) => text.includes(`'${name}'`))
  expect(METRIC_NAMES.filter(isFromState)).toEqual(read)
})

it('names are unique in Prometheus, with their aliases', () => {
  const names = METRIC_NAMES.flatMap((name) => [
    prometheusName(name),
    METRICS[name].alias?.name ?? `${name} has no alias`,
  ])
  expect(new Set(names).size).toBe(names.length)
})

it('the metrics that other systems expect exist', () => {
  const aliases = METRIC_NAMES.map((name) => METRICS[name].alias?.name).filter(Boolean)
  expect(aliases).toEqual([
    'event_dlq_total',
    'event_dlq_errors_total',
    'event_dlq_processing_attempts',
  ])
})

it('histograms have buckets in order, and each metric has a sentence', () => {
  for (const name of METRIC_NAMES) {
    const { kind, buckets, meaning } = METRICS[name]
    expect([name, kind === 'histogram']).toEqual([name, buckets !== undefined])
    expect(buckets ?? []).toEqual([...(buckets ?? [])].sort((left, right) => left - right))
    expect(meaning).toMatch(/^[A-Z0-9].*\.$/)
  }
})
