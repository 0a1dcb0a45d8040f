import type { OutboundEvent, Sink } from '@redrive/runtime'
import { FakeClock } from '@redrive/testing'
import { describe, expect, it } from 'vitest'
import { otlp, type OtlpOptions } from '../src/index.ts'
import { readOtlp } from './decode.ts'
import {
  arrivedOf,
  AT,
  event,
  failureOf,
  never,
  onServer,
  onSink,
  problemsOf,
  respond,
  type Responder,
  type TestServer,
} from './world.ts'

const on = onSink<OtlpOptions>(respond(200, '{"partialSuccess":{}}'), (url, options) =>
  otlp({ url, ...options }),
)

const exported = async (sink: Sink, server: TestServer, ...events: readonly OutboundEvent[]) =>
  readOtlp(await arrivedOf(sink, server, events))

const send = (sink: Sink) => sink.send([event(), event({ id: 'b' })], { signal: never })

describe('otlp', () => {
  it('exports log records with time, severity, name, body and attributes', () => {
    const clock = new FakeClock({ now: AT + 5 })
    return on(
      { clock, resource: { 'service.name': 'shop', replicas: 3, canary: true, load: 0.5 } },
      async (sink, server) => {
        const one = event({ headers: { severity: 'warning' } })
        expect(await exported(sink, server, one)).toEqual([
          {
            resource: { 'service.name': 'shop', replicas: '3', canary: true, load: 0.5 },
            records: [
              {
                timeUnixNano: `${AT}000000`,
                observedTimeUnixNano: `${AT + 5}000000`,
                severityNumber: 13,
                severityText: 'warning',
                eventName: 'order.placed',
                body: '{"order":42}',
                attributes: {
                  'event.id': one.id,
                  'event.key': 'order-42',
                  'event.lane': 'customer-7',
                  'event.content_type': 'application/json',
                },
              },
            ],
          },
        ])
      },
    )
  })

  it.each([
    ['debug', 5],
    ['info', 9],
    ['warning', 13],
    ['error', 17],
    ['fatal', 21],
    ['nonsense', 9],
  ])('severity %s is number %d', (severity, number) =>
    on({}, async (sink, server) => {
      const [exports] = await exported(sink, server, event({ headers: { severity } }))
      expect(exports?.records[0]).toMatchObject({ severityNumber: number })
    }),
  )

  it('is part of the trace of the event, in hex', () =>
    on({}, async (sink, server) => {
      const traceparent = `00-${'ab'.repeat(16)}-${'cd'.repeat(8)}-01`
      const [exports] = await exported(sink, server, event({ headers: { traceparent } }))
      const trace = { traceId: 'ab'.repeat(16), spanId: 'cd'.repeat(8), flags: 1 }
      expect(exports?.records[0]).toMatchObject(trace)
    }))

  it('sends bytes that are not text as bytes', () =>
    on({}, async (sink, server) => {
      const [exports] = await exported(sink, server, event({ bytes: Uint8Array.of(0xff, 0, 1) }))
      expect(exports?.records[0]?.body).toBe('/wAB')
    }))

  it('adds its path to the base URL only', async () => {
    for (const path of ['/', '/v1/logs']) {
      await onServer(
        respond(200, '{}'),
        ({ url }) => otlp({ url: `${url}${path}`, gzip: true }),
        async (sink, server) => {
          await send(sink)
          expect(server.arrived[0]?.path).toBe('/v1/logs')
          expect(server.arrived[0]?.headers['content-encoding']).toBe('gzip')
        },
      )
    }
  })

  it.each(['3', 3])(
    'a partial rejection (%j) is a failure of class integration, with the message of the collector',
    (rejectedLogRecords) =>
      on(
        {},
        async (sink) => {
          const failure = await failureOf(send(sink))
          expect(failure.class).toBe('integration')
          expect(failure.message).toMatch(/rejected 3 of 2 log records: too old$/)
        },
        respond(
          200,
          JSON.stringify({ partialSuccess: { rejectedLogRecords, errorMessage: 'too old' } }),
        ),
      ),
  )

  it('accepts a warning without a rejection, and an empty response', async () => {
    const warning = '{"partialSuccess":{"rejectedLogRecords":"0","errorMessage":"deprecated"}}'
    await on({}, async (sink) => expect(await send(sink)).toBeUndefined(), respond(200, warning))
    await on({}, async (sink) => expect(await send(sink)).toBeUndefined(), respond(200, ''))
  })

  it('a response in another format is a failure of class integration', () =>
    on(
      {},
      async (sink) => {
        expect(await failureOf(send(sink))).toMatchObject({ class: 'integration' })
      },
      respond(200, '<html>'),
    ))

  it.each([
    [
      'is incomplete',
      (response) =>
        void response.writeHead(200, { 'content-length': 10 }).write('{', () => response.destroy()),
    ],
    ['never ends', (response) => void response.writeHead(200).write('{')],
    ['is endless', (response) => void response.writeHead(200).end('x'.repeat(100_000))],
  ] as const satisfies readonly (readonly [string, Responder])[])(
    'a response that %s is an unknown outcome',
    (_, broken) =>
      on(
        {},
        async (sink) => {
          expect(await failureOf(send(sink))).toMatchObject({
            code: 'OUTCOME_UNKNOWN',
            class: 'transient',
          })
        },
        broken,
      ),
  )

  it.each([500, 501])('status %d is not retried, as the protocol requires', (status) =>
    on(
      {},
      async (sink) => expect(await failureOf(send(sink))).toMatchObject({ class: 'integration' }),
      respond(status, 'no'),
    ),
  )

  it('is healthy when an empty export succeeds', () =>
    on({}, async (sink, server) => {
      await sink.healthCheck?.({ signal: never })
      expect(JSON.parse(server.text)).toEqual({ resourceLogs: [] })
      await sink.send([], { signal: never })
      expect(server.arrived).toHaveLength(1)
    }))

  it('reports all problems of its options together', () => {
    expect(
      problemsOf(() => otlp({ url: 'grpc://x', batch: 1.5, headers: { a: 'ö' } })),
    ).toHaveLength(3)
  })
})
