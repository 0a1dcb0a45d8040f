import { channel } from 'node:diagnostics_channel'
import { context, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import {
  TracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace'
import { business } from '@redrive/core'
import { expect, it, onTestFinished } from 'vitest'
import { openTelemetry } from '../src/opentelemetry.ts'
import { PriceMismatch, shop, unreachable } from './shop.ts'

context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())

function traced() {
  const exporter = new InMemorySpanExporter()
  const provider = new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter })] })
  onTestFinished(openTelemetry({ tracer: provider.getTracer('test') }))
  return () => exporter.getFinishedSpans()
}

/** The links of a span: kind and id of the linked span. */
const linksOf = ({ links }: ReadableSpan) =>
  links.map(({ context: { spanId }, attributes }) => [attributes?.['redrive.link'], spanId])

const idOf = (span: ReadableSpan | undefined) => span?.spanContext().spanId
const PRODUCER = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'

it('links the runs of one message through retry, dead letter and replay', async () => {
  const spans = traced()
  const { clock, send, start, replay } = shop()
  const declined = { value: true }
  await start(
    (_, { runs }) => {
      if (!declined.value) return
      throw runs === 0 ? unreachable() : new PriceMismatch('price is wrong')
    },
    { classify: [business(PriceMismatch)], retry: { maxInlineDelay: 0 } },
  )
  const id = send('any', { traceparent: PRODUCER })
  await clock.advance('5m')
  declined.value = false
  await replay('replay-1')
  await clock.advance('5m')

  const runs = spans().filter(({ name }) => name === 'process orders')
  const [first, second, third] = runs
  expect(runs).toHaveLength(3)
  expect(runs.map(({ kind, status }) => [kind, status.code])).toEqual([
    [SpanKind.CONSUMER, SpanStatusCode.ERROR],
    [SpanKind.CONSUMER, SpanStatusCode.ERROR],
    [SpanKind.CONSUMER, SpanStatusCode.UNSET],
  ])
  expect(new Set(runs.map((span) => span.spanContext().traceId)).size).toBe(3)
  expect(runs.map(linksOf)).toEqual([
    [['creation', 'b7ad6b7169203331']],
    [
      ['creation', 'b7ad6b7169203331'],
      ['previous_run', idOf(first)],
    ],
    [
      ['creation', 'b7ad6b7169203331'],
      ['previous_cycle', idOf(second)],
    ],
  ])
  expect(third?.attributes).toMatchObject({
    'messaging.system': 'memory',
    'messaging.operation.name': 'process',
    'messaging.destination.name': 'orders',
    'messaging.message.id': id,
    'redrive.handler': 'billing',
    'redrive.cycle': 2,
    'redrive.replay_id': 'replay-1',
  })
  expect(first?.attributes['error.type']).toBe('Error')

  const [retry, deadLetter] = spans().filter(({ name }) => !name.startsWith('process'))
  expect([retry?.name, retry?.parentSpanContext?.spanId]).toEqual(['retry orders', idOf(first)])
  expect([deadLetter?.name, deadLetter?.parentSpanContext?.spanId]).toEqual([
    'dead_letter orders',
    idOf(second),
  ])
  expect(deadLetter?.attributes).toMatchObject({
    'redrive.reason': 'terminal',
    'redrive.class': 'business',
    'redrive.attempts': 2,
    'messaging.destination.name': 'orders.dlq',
  })
})

it('exports the id of a replay without its signature', async () => {
  const spans = traced()
  const { clock, send, start, replay } = shop()
  await start(
    () => {
      throw new PriceMismatch('no')
    },
    { classify: [business(PriceMismatch)] },
  )
  send('any')
  await clock.settle()
  const id = '74bf32ab-b70a-4688-94dd-bac3653025d8'
  await replay(`${id}.1.EVERZGI4-AHI24d_cRXV5w`)
  await clock.settle()
  const runs = spans().filter(({ name }) => name === 'process orders')
  expect(runs.map(({ attributes }) => attributes['redrive.replay_id'])).toEqual([undefined, id])
})

it('makes the span of the run the parent of spans in the handler', async () => {
  const spans = traced()
  const { clock, send, start } = shop()
  const active: (string | undefined)[] = []
  await start(async () => {
    await Promise.resolve()
    active.push(trace.getActiveSpan()?.spanContext().spanId)
  })
  send('any')
  await clock.settle()
  expect(active).toEqual([idOf(spans()[0])])
})

it('ends the span of a handler that throws before its first await', async () => {
  const spans = traced()
  const { clock, send, start } = shop()
  await start(
    () => {
      throw new PriceMismatch('no')
    },
    { classify: [business(PriceMismatch)] },
  )
  send('any')
  await clock.settle()
  expect(spans().map(({ name }) => name)).toEqual(['process orders', 'dead_letter orders'])
})

it('writes the new name of the broker attribute when the user opts in', async () => {
  process.env['OTEL_SEMCONV_STABILITY_OPT_IN'] = 'http, messaging'
  onTestFinished(() => {
    delete process.env['OTEL_SEMCONV_STABILITY_OPT_IN']
  })
  const spans = traced()
  const { clock, send, start } = shop()
  await start(() => undefined)
  send('any')
  await clock.settle()
  expect(spans()[0]?.attributes).toMatchObject({ 'messaging.system.name': 'memory' })
  expect(spans()[0]?.attributes).not.toHaveProperty('messaging.system')
})

it('ignores a traceparent that is not valid', async () => {
  const spans = traced()
  const { clock, send, start } = shop()
  await start(() => undefined)
  for (const traceparent of ['00-zz', `00-${'0'.repeat(32)}-b7ad6b7169203331-01`, 7, null]) {
    send('any', { traceparent })
  }
  await clock.settle()
  expect(spans().map(linksOf)).toEqual([[], [], [], []])
})

it('does not make a message that succeeds publish an event', () => {
  traced()
  expect(channel('redrive:event').hasSubscribers).toBe(false)
})
