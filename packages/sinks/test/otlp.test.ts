import type { OutboundEvent, Sink } from '@redrive/runtime'
import { FakeClock } from '@redrive/testing'
import { describe, expect, it } from 'vitest'
import { otlp, type OtlpOptions } from '../src/index.ts'
import { readOtlp } from './decode.ts'
import {
  type Answer,
  answer,
  AT,
  event,
  failureOf,
  never,
  onServer,
  problemsOf,
  type TestServer,
} from './world.ts'

const on = (
  options: Partial<OtlpOptions>,
  test: (sink: Sink, server: TestServer) => Promise<void>,
  answers: Answer = answer(200, '{"partialSuccess":{}}'),
) => onServer(answers, ({ url }) => otlp({ url, ...options }), test)

const exported = async (sink: Sink, server: TestServer, ...events: readonly OutboundEvent[]) => {
  await sink.send(events, { signal: never })
  const [arrived] = server.arrived
  if (arrived === undefined) throw new Error('nothing arrived')
  return readOtlp(arrived)
}

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

  it('is part of the trace that the event names, in hex', () =>
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

  it('adds its path to the base address only', async () => {
    for (const path of ['/', '/v1/logs']) {
      await onServer(
        answer(200, '{}'),
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
    'a part refused (%j) is a failure of class integration, in the words of the collector',
    (rejectedLogRecords) =>
      on(
        {},
        async (sink) => {
          const failure = await failureOf(send(sink))
          expect(failure.class).toBe('integration')
          expect(failure.message).toMatch(/refused 3 of 2 log records: too old$/)
        },
        answer(
          200,
          JSON.stringify({ partialSuccess: { rejectedLogRecords, errorMessage: 'too old' } }),
        ),
      ),
  )

  it('a warning without a refusal is accepted, and so is an empty answer', async () => {
    const warning = '{"partialSuccess":{"rejectedLogRecords":"0","errorMessage":"deprecated"}}'
    await on({}, async (sink) => expect(await send(sink)).toBeUndefined(), answer(200, warning))
    await on({}, async (sink) => expect(await send(sink)).toBeUndefined(), answer(200, ''))
  })

  it('an answer in another language is a failure of class integration', () =>
    on(
      {},
      async (sink) => {
        expect(await failureOf(send(sink))).toMatchObject({ class: 'integration' })
      },
      answer(200, '<html>'),
    ))

  it.each([
    [
      'breaks off',
      (response) =>
        void response.writeHead(200, { 'content-length': 10 }).write('{', () => response.destroy()),
    ],
    ['never ends', (response) => void response.writeHead(200).write('{')],
    ['is endless', (response) => void response.writeHead(200).end('x'.repeat(100_000))],
  ] as const satisfies readonly (readonly [string, Answer])[])(
    'an answer that %s is an unknown outcome',
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

  it.each([500, 501])('status %d must not be sent again, says the protocol', (status) =>
    on(
      {},
      async (sink) => expect(await failureOf(send(sink))).toMatchObject({ class: 'integration' }),
      answer(status, 'no'),
    ),
  )

  it('is healthy when an empty export is answered', () =>
    on({}, async (sink, server) => {
      await sink.healthCheck({ signal: never })
      expect(JSON.parse(server.text)).toEqual({ resourceLogs: [] })
      await sink.send([], { signal: never })
      expect(server.arrived).toHaveLength(1)
    }))

  it('tells everything that is wrong with its options at once', () => {
    expect(
      problemsOf(() => otlp({ url: 'grpc://x', batch: 1.5, headers: { a: 'ö' } })),
    ).toHaveLength(3)
  })
})
