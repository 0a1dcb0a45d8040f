import type { OutboundEvent, Sink } from '@redrive/runtime'
import { FakeClock } from '@redrive/testing'
import { describe, expect, it } from 'vitest'
import { sentry, type SentryOptions } from '../src/index.ts'
import { readEnvelope } from './decode.ts'
import {
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

const KEY = 'a'.repeat(32)
const OK = respond(200, '{"id":"1"}')

const on = onSink<SentryOptions>(OK, (url, options) =>
  sentry({ dsn: `${url.replace('://', `://${KEY}@`)}/17`, ...options }),
)

const send = (sink: Sink, ...events: readonly OutboundEvent[]) =>
  sink.send(events.length === 0 ? [event()] : events, { signal: never })

const envelopes = ({ arrived }: TestServer) => arrived.map(readEnvelope)

/** Runs the health check, which every sink for Sentry has. */
const checked = async (sink: Sink) => sink.healthCheck?.({ signal: never })

describe('sentry', () => {
  it('sends one envelope with one event, to the project of the DSN', () => {
    const clock = new FakeClock({ now: AT + 50 })
    const options = {
      environment: 'prod',
      release: 'shop@1',
      serverName: 'node-1',
      tags: { team: 'shop' },
    }
    return on({ ...options, clock }, async (sink, server) => {
      expect(sink.batch).toBe(1)
      await send(sink, event({ headers: { severity: 'fatal', trace: 'abc' } }))
      const [arrived] = server.arrived
      expect(arrived?.path).toBe('/api/17/envelope/')
      expect(arrived?.headers['x-sentry-auth']).toBe(
        `Sentry sentry_version=7, sentry_client=redrive, sentry_key=${KEY}`,
      )
      expect(arrived?.headers['content-encoding']).toBe('gzip')
      const [envelope] = envelopes(server)
      const id = '0190a5f0000070008000000000000001'
      expect(envelope?.header).toEqual({ event_id: id, sent_at: new Date(AT + 50).toISOString() })
      expect(envelope?.items).toHaveLength(1)
      expect(envelope?.items[0]?.header).toMatchObject({
        type: 'event',
        content_type: 'application/json',
      })
      expect(envelope?.items[0]?.payload).toEqual({
        event_id: id,
        timestamp: AT / 1_000,
        platform: 'node',
        level: 'fatal',
        logger: 'redrive',
        logentry: { formatted: 'order.placed' },
        environment: 'prod',
        release: 'shop@1',
        server_name: 'node-1',
        tags: { team: 'shop', 'event.type': 'order.placed' },
        contexts: {
          event: {
            type: 'event',
            id: event().id,
            key: 'order-42',
            lane: 'customer-7',
            contentType: 'application/json',
            headers: { severity: 'fatal', trace: 'abc' },
          },
        },
        extra: { body: { order: 42 } },
      })
    })
  })

  it('counts the length in bytes and keeps line breaks inside', () =>
    on({ gzip: false }, async (sink, server) => {
      const bytes = Buffer.from('{"text":\n"ä 🚀\\n"}')
      await send(
        sink,
        event({ bytes }),
        event({ bytes: Buffer.from('plain\nö'), contentType: 'text/plain' }),
      )
      const bodies = envelopes(server).map(({ items }) => items[0]?.payload['extra'])
      expect(bodies).toEqual([{ body: { text: 'ä 🚀\n' } }, { body: 'plain\nö' }])
    }))

  it('gives an event the same id every time, and another event another one', () =>
    on({}, async (sink, server) => {
      await send(sink, event({ id: 'order 1' }), event({ id: 'order 1' }), event({ id: 'order 2' }))
      const [a, again, b] = envelopes(server).map(({ header }) => String(header['event_id']))
      expect(a).toMatch(/^[\da-f]{32}$/)
      expect(again).toBe(a)
      expect(b).not.toBe(a)
    }))

  it('uses the configured title', () =>
    on({ title: ({ type, key }) => `${type} of ${key}` }, async (sink, server) => {
      await send(sink)
      const logentry = envelopes(server)[0]?.items[0]?.payload['logentry']
      expect(logentry).toEqual({ formatted: 'order.placed of order-42' })
    }))

  it.each([
    ['all', '60::organization', 60_000],
    ['errors among others', '10:transaction:key, 30:session;error:organization:quota', 30_000],
    [
      'the longest limit of our categories',
      '5:error:key, 20:default:key, 90:attachment:key',
      20_000,
    ],
    ['a limit without a number', 'soon:error:key', 60_000],
  ])('X-Sentry-Rate-Limits for %s', (_, limits, waitMs) => {
    const clock = new FakeClock()
    const limited = respond(200, '{}', { 'x-sentry-rate-limits': limits })
    return on(
      { clock },
      async (sink, server) => {
        await send(sink)
        expect(await failureOf(send(sink))).toMatchObject({
          class: 'transient',
          retryAfterMs: waitMs,
        })
        await clock.advance(waitMs - 1)
        expect(await failureOf(send(sink))).toMatchObject({ retryAfterMs: 1 })
        expect(server.arrived).toHaveLength(1)
        await clock.advance(1)
        await send(sink)
        expect(server.arrived).toHaveLength(2)
      },
      [limited, OK],
    )
  })

  it.each(['60:transaction;attachment:organization', ''])(
    'X-Sentry-Rate-Limits of %j do not apply to our events',
    (limits) =>
      on(
        {},
        async (sink, server) => {
          await send(sink)
          await send(sink)
          expect(server.arrived).toHaveLength(2)
        },
        respond(200, '{}', { 'x-sentry-rate-limits': limits }),
      ),
  )

  it.each([
    ['Retry-After in seconds', { 'retry-after': '7' }, 7_000],
    ['Retry-After as a date', { 'retry-after': new Date(AT + 8_877).toUTCString() }, 8_877],
    ['no header', {}, 60_000],
    ['limits, which win', { 'retry-after': '7', 'x-sentry-rate-limits': '9:error:key' }, 9_000],
  ])('a 429 with %s also delays the next events', (_, headers, retryAfterMs) => {
    const clock = new FakeClock({ now: AT })
    return on(
      { clock },
      async (sink, server) => {
        const expected = { class: 'transient', code: 'HTTP 429', retryAfterMs }
        expect(await failureOf(send(sink))).toMatchObject(expected)
        expect(await failureOf(send(sink))).toMatchObject(expected)
        expect(server.arrived).toHaveLength(1)
      },
      [respond(429, '', headers as Record<string, string>), OK],
    )
  })

  it.each([200, 400])('is healthy when the response to an envelope without items is %d', (status) =>
    on(
      {},
      async (sink, server) => {
        await expect(checked(sink)).resolves.toBeUndefined()
        expect(envelopes(server)[0]?.items).toEqual([])
      },
      respond(status),
    ),
  )

  it.each([
    [401, 'integration'],
    [429, 'transient'],
    [500, 'transient'],
  ])('is unhealthy when the response is %d', (status, expected) =>
    on(
      {},
      async (sink) =>
        expect(await failureOf(checked(sink))).toMatchObject({
          class: expected,
        }),
      respond(status),
    ),
  )

  it('parses a DSN with a secret, a port and a path', () =>
    onServer(
      OK,
      ({ url }) => sentry({ dsn: `${url.replace('://', `://${KEY}:old@`)}/a/b/17` }),
      async (sink, server) => {
        await send(sink)
        expect(server.arrived[0]?.path).toBe('/a/b/api/17/envelope/')
        expect(server.arrived[0]?.headers['x-sentry-auth']).toContain('sentry_secret=old')
      },
    ))

  it.each([
    [
      '',
      "expected a URL such as 'https://key@o1.ingest.sentry.io/2', got ''; probably the environment variable SENTRY_DSN is not set",
    ],
    ['hunter2', "expected a URL such as 'https://key@o1.ingest.sentry.io/2', got another text"],
    [
      'ftp://hunter2@sentry.io/1',
      "expected a URL such as 'https://key@o1.ingest.sentry.io/2', got another text",
    ],
    ['https://sentry.io/1', 'the public key before the @ is missing'],
    ['https://hunter2@sentry.io', 'the project number at the end is missing'],
    ['https://hunter2@sentry.io/shop', 'the project number at the end is missing'],
  ])('reports the problem of the DSN %j without repeating it', (dsn, expected) => {
    const problems = problemsOf(() => sentry({ dsn }))
    expect(problems).toEqual([`dsn: ${expected}`])
    expect(problems.join()).not.toContain('hunter2')
  })
})
