import { describe, expect, it } from 'vitest'
import { loki, type LokiOptions } from '../src/index.ts'
import { readLoki } from './decode.ts'
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
  type TestServer,
} from './world.ts'
import type { OutboundEvent, Sink } from '@redrive/runtime'

const on = onSink<LokiOptions>(respond(204), (url, options) => loki({ url, ...options }))

/** Sends, and parses the request as strictly as Loki. */
const pushed = async (sink: Sink, server: TestServer, ...events: readonly OutboundEvent[]) =>
  readLoki(await arrivedOf(sink, server, events))

describe('loki', () => {
  it('pushes the body as the line, with time in nanoseconds and the rest as structured metadata', () =>
    on({}, async (sink, server) => {
      const one = event({ headers: { severity: 'error' } })
      expect(await pushed(sink, server, one)).toEqual([
        {
          stream: { service_name: 'redrive' },
          values: [
            [
              `${AT}000000`,
              '{"order":42}',
              {
                id: one.id,
                key: 'order-42',
                type: 'order.placed',
                lane: 'customer-7',
                severity: 'error',
              },
            ],
          ],
        },
      ])
    }))

  it('sorts the lines of a stream by time', () =>
    on({}, async (sink, server) => {
      const events = [3, 1, 2].map((ms) => event({ id: `e${ms}`, at: AT + ms }))
      const [stream] = await pushed(sink, server, ...events)
      expect(stream?.values.map(([, , { id }]) => id)).toEqual(['e1', 'e2', 'e3'])
    }))

  it('makes one stream of the same labels in any order', () =>
    on(
      {
        labels: ({ type, id }): Record<string, string> =>
          id === 'b' ? { kind: type, app: 'shop' } : { app: 'shop', kind: type },
      },
      async (sink, server) => {
        const [a, b, c] = [
          event({ id: 'a' }),
          event({ id: 'b' }),
          event({ id: 'c', type: 'other' }),
        ]
        const streams = await pushed(sink, server, a, b, c)
        expect(streams.map(({ stream, values }) => [stream['kind'], values.length])).toEqual([
          ['order.placed', 2],
          ['other', 1],
        ])
      },
    ))

  it('rejects an id as a label', () =>
    on({ labels: ({ id }) => ({ id }) }, async (sink, server) => {
      const failure = await failureOf(sink.send([event()], { signal: never }))
      expect(failure.message).toContain('structured metadata')
      expect(failure.class).toBe('integration')
      expect(server.arrived).toEqual([])
    }))

  it('describes a line that is not text', () =>
    on({}, async (sink, server) => {
      const bytes = Uint8Array.of(0xff, 0, 1)
      const [stream] = await pushed(sink, server, event({ bytes, contentType: 'image/png' }))
      expect(stream?.values[0]?.[1]).toBe('/wAB')
      expect(stream?.values[0]?.[2]).toMatchObject({ encoding: 'base64', contentType: 'image/png' })
    }))

  it('sends tenant and credentials, keeps the path prefix, and compresses when configured', () =>
    onServer(
      respond(204),
      ({ url }) =>
        loki({
          url: `${url}/logs/`,
          tenant: 'shop',
          auth: { user: 'me', password: 'pass' },
          gzip: true,
        }),
      async (sink, server) => {
        await sink.send([event()], { signal: never })
        const [arrived] = server.arrived
        expect(arrived?.path).toBe('/logs/loki/api/v1/push')
        expect(arrived?.headers).toMatchObject({
          'x-scope-orgid': 'shop',
          authorization: `Basic ${Buffer.from('me:pass').toString('base64')}`,
          'content-encoding': 'gzip',
        })
        expect(JSON.parse(server.text)).toHaveProperty('streams')
      },
    ))

  it('sends no request for an empty batch', () =>
    on({}, async (sink, server) => {
      await sink.send([], { signal: never })
      expect(server.arrived).toEqual([])
    }))

  it('accepts only 204: a proxy that responds with 200 to everything has stored nothing', () =>
    on(
      {},
      async (sink) => {
        const failure = await failureOf(sink.send([event()], { signal: never }))
        expect(failure.class).toBe('integration')
        expect(failure.message).toContain('responded with 200, which is not the expected status')
      },
      respond(200, '<html>'),
    ))

  it.each([
    [204, true],
    [400, true],
    [422, true],
    [200, false],
    [404, false],
    [500, false],
  ])('pushes nothing as its health check; with status %d the result is %s', (status, isHealthy) =>
    on(
      {},
      async (sink, server) => {
        const isOk = await sink.healthCheck?.({ signal: never }).then(
          () => true,
          () => false,
        )
        expect(isOk).toBe(isHealthy)
        expect(server.arrived[0]).toMatchObject({ method: 'POST', path: '/loki/api/v1/push' })
        expect(server.text).toBe('{"streams":[]}')
      },
      respond(status),
    ),
  )

  it('adds the headers of the application to the metadata', () =>
    on({}, async (sink, server) => {
      const headers = { 'X-Tenant': 't1', severity: 'error', authorization: 'secret' }
      await sink.send([event({ headers })], { signal: never })
      expect(server.text).toContain('"header_x_tenant":"t1"')
      expect(server.text).not.toContain('secret')
    }))

  it('reports all problems of its options together', () => {
    const problems = problemsOf(() =>
      loki({
        url: 'ftp://me:hunter2@loki',
        labels: { 'not-one': 'x' },
        batch: 0,
        tenant: 'a\nb',
        headers: { 'a b': 'c' },
      }),
    )
    expect(problems.map((problem) => problem.split(':')[0])).toEqual([
      'url',
      'batch',
      'labels',
      'headers',
      'tenant',
    ])
    expect(problems.join()).not.toContain('hunter2')
    expect(problemsOf(() => loki({ url: 'nowhere', labels: {} }))).toHaveLength(2)
  })
})
