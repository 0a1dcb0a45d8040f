/** Tests the sink on a real OpenTelemetry Collector. */
import { services, startConfigured } from '@redrive/dev-support'
import { beforeAll, describe, expect, it } from 'vitest'
import { otlp } from '../src/index.ts'
import { untilServed } from './served.ts'
import { event, failureOf, never } from './world.ts'

let program = ''
beforeAll(async () => {
  await services('up', 'collector')
  program = await services('do', 'collector', 'path')
}, 1_800_000)

const config = (port: number) => `
receivers:
  otlp:
    protocols:
      http:
        endpoint: 127.0.0.1:${port}
        max_request_body_size: 100000
exporters:
  debug:
    verbosity: detailed
service:
  telemetry:
    metrics:
      level: none
  pipelines:
    logs:
      receivers: [otlp]
      exporters: [debug]
`

describe('otlp on a real collector', () => {
  it('is accepted with every field, and rejected when too large', { timeout: 90_000 }, async () => {
    const service = await startConfigured(program, config, (path) => ['--config', path])
    const url = `http://127.0.0.1:${service.port}`
    const sinks = [false, true].map((gzip) =>
      otlp({ url, gzip, resource: { 'service.name': 'shop' } }),
    )
    try {
      const [sink] = sinks
      await untilServed('the collector responds', service, async () => {
        await sink?.healthCheck?.({ signal: never })
        return true
      })
      const traceparent = `00-${'ab'.repeat(16)}-${'cd'.repeat(8)}-01`
      for (const [index, one] of sinks.entries()) {
        const headers = { severity: 'warning', traceparent }
        await one.send(
          [
            event({ id: `text-${index}`, headers }),
            event({ id: `bytes-${index}`, bytes: Uint8Array.of(255, 0) }),
          ],
          { signal: never },
        )
      }
      const output = await untilServed('the last record', service, async () =>
        service.output().includes('bytes-1') ? service.output() : undefined,
      )
      for (const expected of [
        '-> service.name: Str(shop)',
        'Timestamp: 2023-11-14 22:13:20.123 +0000 UTC',
        'SeverityText: warning',
        'SeverityNumber: Warn(13)',
        'SeverityNumber: Info(9)',
        'EventName: order.placed',
        'Body: Str({"order":42})',
        'Body: Bytes(',
        '-> event.id: Str(text-0)',
        '-> event.id: Str(text-1)',
        '-> event.key: Str(order-42)',
        '-> event.lane: Str(customer-7)',
        `Trace ID: ${'ab'.repeat(16)}`,
        `Span ID: ${'cd'.repeat(8)}`,
        'Flags: 1',
      ]) {
        expect(output).toContain(expected)
      }
      const large = event({ bytes: Buffer.alloc(200_000, 'x'), contentType: 'text/plain' })
      const failure = await failureOf(
        sinks[0]?.send([large], { signal: never }) ?? Promise.resolve(),
      )
      expect(failure.class).toBe('integration')
    } finally {
      await Promise.all(sinks.map((sink) => sink.close()))
      await service.stop()
    }
  })
})
