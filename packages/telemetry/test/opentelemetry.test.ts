import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics'
import { business } from '@redrive/core'
import { expect, it, onTestFinished } from 'vitest'
import { LABEL_VALUES } from '../src/metrics.ts'
import { openTelemetry } from '../src/opentelemetry.ts'
import { PriceMismatch, shop } from './shop.ts'

function metered() {
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE)
  // Exports only when the test flushes it.
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 2 ** 31 - 1 })
  const provider = new MeterProvider({ readers: [reader] })
  onTestFinished(openTelemetry({ meter: provider.getMeter('test'), tracer: false }))
  onTestFinished(() => provider.shutdown())
  /** Returns the data points of a metric. */
  return async (name: string) => {
    await provider.forceFlush()
    const { scopeMetrics } = exporter.getMetrics().at(-1) ?? { scopeMetrics: [] }
    return scopeMetrics
      .flatMap(({ metrics }) => metrics)
      .filter(({ descriptor }) => descriptor.name === name)
      .flatMap(({ dataPoints }) =>
        dataPoints.map(({ attributes, value }) => ({ attributes, value })),
      )
  }
}

it('exports counters, gauges and the duration with the names of OpenTelemetry', async () => {
  const pointsOf = metered()
  const { clock, send, start } = shop()
  const consumer = await start(
    ({ body }) => {
      if (body === 'wrong') throw new PriceMismatch('no')
    },
    { classify: [business(PriceMismatch)], dependency: 'prices' },
  )
  for (const body of ['good', 'good', 'wrong']) send(body)
  await clock.settle()

  const names = { 'messaging.destination.name': 'orders', 'redrive.handler': 'billing' }
  expect(await pointsOf('redrive.consumer.success')).toEqual([{ attributes: names, value: 2 }])
  expect(await pointsOf('redrive.dlq.saved')).toEqual([
    {
      attributes: {
        ...names,
        'error.type': 'PriceMismatch',
        'redrive.class': 'business',
        'redrive.reason': 'terminal',
      },
      value: 1,
    },
  ])
  expect(await pointsOf('redrive.consumer.health')).toEqual([{ attributes: names, value: 2 }])
  expect(await pointsOf('redrive.circuit_breaker.call')).toEqual([
    { attributes: { 'redrive.dependency': 'prices' }, value: 3 },
  ])
  const durations = await pointsOf('messaging.process.duration')
  expect(durations.map(({ attributes }) => attributes)).toEqual([
    {
      'messaging.destination.name': 'orders',
      'messaging.operation.name': 'process',
      'messaging.system': 'memory',
    },
    {
      'error.type': 'PriceMismatch',
      'messaging.destination.name': 'orders',
      'messaging.operation.name': 'process',
      'messaging.system': 'memory',
    },
  ])

  await consumer.stop({ drain: 0 })
  expect(await pointsOf('redrive.circuit_breaker.call')).toMatchObject([{ value: 3 }])
})

it('limits the error types of the duration', async () => {
  const pointsOf = metered()
  const { clock, send, start } = shop()
  let failures = 0
  await start(
    () => {
      failures += 1
      throw Object.assign(new Error('no'), { name: `Error${failures}` })
    },
    { classify: [business(Error)] },
  )
  for (let sent = 0; sent < LABEL_VALUES + 10; sent++) send('wrong')
  await clock.settle()
  const types = (await pointsOf('messaging.process.duration')).map(
    ({ attributes }) => attributes['error.type'],
  )
  expect(failures).toBe(LABEL_VALUES + 10)
  expect(types).toHaveLength(LABEL_VALUES + 1)
  expect(types).toContain('other')
})
