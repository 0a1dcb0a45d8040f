import { createHmac, randomBytes } from 'node:crypto'
import type { LookupAddress } from 'node:dns'
import type { LookupFunction } from 'node:net'
import { isRedriveError } from '@redrive/core'
import type { Sink } from '@redrive/runtime'
import { FakeClock } from '@redrive/testing'
import { describe, expect, it } from 'vitest'
import { webhook, type WebhookOptions } from '../src/index.ts'
import { verifyWebhook } from './decode.ts'
import {
  AT,
  type Arrived,
  event,
  failureOf,
  never,
  onServer,
  onSink,
  problemsOf,
  respond,
  TestServer,
} from './world.ts'

const secretOf = (bytes: number) => `whsec_${randomBytes(bytes).toString('base64')}`
const SECRET = secretOf(32)
const LOCAL = ['127.0.0.1']

const on = onSink<WebhookOptions>(respond(200), (url, options) =>
  webhook({ url, secret: SECRET, allowHttp: true, allow: LOCAL, ...options }),
)

const send = (sink: Sink, given: Parameters<typeof event>[0] = {}) =>
  sink.send([event(given)], { signal: never })

/** A resolver that returns these results one after the other, and counts its calls. */
function resolver(...responses: readonly (readonly string[])[]) {
  const lookups: string[] = []
  const lookup: LookupFunction = (host, options, callback) => {
    expect(options.all).toBe(true)
    const addresses = responses[Math.min(lookups.push(host), responses.length) - 1] ?? []
    const found: LookupAddress[] = addresses.map((address) => ({
      address,
      family: address.includes(':') ? 6 : 4,
    }))
    callback(null, found)
  }
  return { lookup, lookups }
}

describe('webhook', () => {
  it('posts the bytes unchanged, with a signature that a receiver can check', () => {
    const clock = new FakeClock({ now: AT })
    const bytes = Uint8Array.from({ length: 256 }, (_, value) => value)
    return on({ clock }, async (sink, server) => {
      expect(sink.batch).toBe(1)
      await send(sink, { bytes, contentType: 'application/octet-stream' })
      const [arrived] = server.arrived
      expect(arrived?.method).toBe('POST')
      expect(arrived?.body.equals(bytes)).toBe(true)
      expect(arrived?.headers).toMatchObject({
        'content-type': 'application/octet-stream',
        'webhook-id': event().id,
        'webhook-timestamp': String(Math.floor(AT / 1_000)),
        'redrive-type': 'order.placed',
        'redrive-key': 'order-42',
      })
      if (arrived === undefined) throw new Error('nothing arrived')
      expect(verifyWebhook(arrived, SECRET, AT)).toBe(true)
      expect(verifyWebhook({ ...arrived, body: Buffer.from('forged') }, SECRET, AT)).toBe(false)
      expect(verifyWebhook(arrived, secretOf(32), AT)).toBe(false)
    })
  })

  it('sends only its part of a larger buffer', () =>
    on({}, async (sink, server) => {
      await send(sink, { bytes: Buffer.from('abcdef').subarray(2, 4) })
      expect(server.text).toBe('cd')
    }))

  it('signs with every secret during a rotation', () => {
    const [old, next] = [secretOf(24), secretOf(64)]
    const clock = new FakeClock({ now: AT })
    return on({ secret: [next, old], clock }, async (sink, server) => {
      await send(sink)
      const [arrived] = server.arrived
      if (arrived === undefined) throw new Error('nothing arrived')
      expect([next, old].map((secret) => verifyWebhook(arrived, secret, AT))).toEqual([true, true])
    })
  })

  it('has the same id on every attempt, and the time of the attempt', () => {
    const clock = new FakeClock({ now: AT })
    return on(
      { clock },
      async (sink, server) => {
        expect(await failureOf(send(sink))).toMatchObject({ class: 'transient' })
        await clock.advance('10m')
        await send(sink)
        const [first, second] = server.arrived
        expect(second?.headers['webhook-id']).toBe(first?.headers['webhook-id'])
        if (second === undefined) throw new Error('nothing arrived')
        expect(verifyWebhook(second, SECRET, AT + 600_000)).toBe(true)
      },
      [respond(500), respond(200)],
    )
  })

  it('encodes an id so that it is not ambiguous', () =>
    on({}, async (sink, server) => {
      for (const id of ['a.1', 'a b', 'ä\n', 'a%b']) await send(sink, { id })
      const ids = server.arrived.map(({ headers }) => headers['webhook-id'])
      expect(ids).toEqual(['a%2E1', 'a%20b', '%C3%A4%0A', 'a%25b'])
    }))

  it('forwards the trace', () =>
    on({}, async (sink, server) => {
      await send(sink, { headers: { traceparent: '00-1', tracestate: 'a=b', secret: 'no' } })
      expect(server.arrived[0]?.headers).toMatchObject({ traceparent: '00-1', tracestate: 'a=b' })
    }))

  it('does not allow to replace signed headers', () =>
    on({ headers: { 'Webhook-Id': 'forged', 'webhook-id': 'forged' } }, async (sink, server) => {
      await send(sink)
      expect(server.arrived[0]?.headers['webhook-id']).toBe(event().id)
    }))

  it('has no health check, because HEAD can succeed while every POST fails', () =>
    on({}, async (sink) => {
      expect('healthCheck' in sink).toBe(false)
    }))

  it('signs type and key, so that neither can be exchanged', () =>
    on({ clock: new FakeClock({ now: AT }) }, async (sink, server) => {
      await send(sink, { type: 'order.placed', key: 'order.42' })
      const { headers, body } = server.arrived[0] as Arrived
      const key = Buffer.from(SECRET.slice('whsec_'.length), 'base64')
      const seconds = Math.floor(AT / 1_000)
      const mac = (type: string) =>
        createHmac('sha256', key)
          .update(`${event().id}.${seconds}.${type}.order%2E42.`)
          .update(body)
          .digest('base64')
      expect(headers['redrive-signature']).toBe(`v1,${mac('order%2Eplaced')}`)
      expect(headers['redrive-signature']).not.toBe(`v1,${mac('order%2Epaid')}`)
    }))

  it('sends the headers of the application, and no event replaces a header of the request', () =>
    on({ headers: { 'x-api-version': '2' } }, async (sink, server) => {
      const headers = {
        tenant: 't1',
        traceparent: '00-a-b-01',
        'X-Team': 'größe',
        'x-api-version': '1',
        'content-type': 'text/evil',
        'webhook-id': 'forged',
        authorization: 'Bearer secret',
        host: 'evil',
        'not a name': 'x',
        severity: 'info',
      }
      await send(sink, { headers })
      const arrived = server.arrived[0]?.headers
      expect(arrived).toMatchObject({
        tenant: 't1',
        traceparent: '00-a-b-01',
        'x-team': 'gr%C3%B6%C3%9Fe',
        'x-api-version': '2',
        'content-type': 'application/json',
        'webhook-id': event().id,
      })
      expect(arrived?.host).toContain('127.0.0.1')
      expect(Object.keys(arrived ?? {})).not.toContain('authorization')
      expect(Object.keys(arrived ?? {})).not.toContain('severity')
    }))

  it('reports all problems of its options together, without a secret', () => {
    const problems = problemsOf(() =>
      webhook({
        url: 'http://example.com',
        secret: ['hunter2', secretOf(23), `${SECRET}!`],
        allow: ['10.0.0.0/99'],
      }),
    )
    expect(problems.map((problem) => problem.split(':')[0])).toEqual([
      'url',
      'secret',
      'secret',
      'secret',
      'allow',
    ])
    expect(problems.join()).not.toContain('hunter2')
    expect(
      problemsOf(() => webhook({ url: 'file:///etc/passwd', secret: [], allowHttp: true })),
    ).toHaveLength(2)
  })
})

describe('webhook and addresses that are not public', () => {
  const strict = (url: string, options: Partial<WebhookOptions> = {}) =>
    webhook({ url, secret: SECRET, allowHttp: true, ...options })

  it.each([
    '127.0.0.1',
    '127.1',
    '2130706433',
    '0x7f000001',
    '0x7f.1',
    '0177.0.0.1',
    '017700000001',
    '0.0.0.0',
    '0',
    '127.0.0.1.',
    '１２７.0.0.1',
    '10.1.2.3',
    '100.64.0.1',
    '169.254.169.254',
    '0xa9fea9fe',
    '192.168.1.1',
    '172.16.0.1',
    '224.0.0.1',
    '[::1]',
    '[::]',
    '[::ffff:127.0.0.1]',
    '[::ffff:7f00:1]',
    '[0:0:0:0:0:ffff:7f00:0001]',
    '[64:ff9b::7f00:1]',
    '[2002:7f00:1::]',
    '[fd00:ec2::254]',
    '[fe80::1]',
    '[fec0::1]',
    '[ff02::1]',
  ])('rejects http://%s before any lookup', (host) => {
    expect(() => strict(`http://${host}:1/hook`)).toThrow(/not public/)
  })

  it.each(['localhost', 'LOCALHOST'])('rejects %s when it connects', async (host) => {
    const server = await new TestServer().listen()
    try {
      const failure = await failureOf(send(strict(`http://${host}:${server.port}`)))
      expect(failure).toMatchObject({ class: 'integration', code: 'REFUSED' })
      expect(failure.message).not.toContain('127.0.0.1')
      expect(server.arrived).toEqual([])
    } finally {
      await server.close()
    }
  })

  it.each([
    ['127.0.0.1'],
    ['::1'],
    ['::ffff:127.0.0.1'],
    ['169.254.169.254'],
    ['10.0.0.1', '192.168.0.1'],
    ['not an address'],
    [],
  ])('rejects a name that resolves to %s', async (...addresses) => {
    const server = await new TestServer().listen()
    const { lookup } = resolver(addresses)
    try {
      const sink = strict(`http://hooks.example:${server.port}`, { lookup })
      expect(await failureOf(send(sink))).toMatchObject({ class: 'integration' })
      expect(server.arrived).toEqual([])
    } finally {
      await server.close()
    }
  })

  it('also rejects over TLS', async () => {
    const { lookup, lookups } = resolver(['127.0.0.1'])
    const sink = strict('https://hooks.example:1', { lookup })
    expect(await failureOf(send(sink))).toMatchObject({ class: 'integration' })
    expect(lookups).toEqual(['hooks.example'])
  })

  it('connects to exactly the checked address, with one lookup per connection', () => {
    // A second lookup would get another result.
    const { lookup, lookups } = resolver(['127.0.0.1'], ['127.0.0.2'])
    return onServer(
      respond(200),
      ({ port }) => strict(`http://hooks.example:${port}`, { lookup, allow: ['127.0.0.1'] }),
      async (sink, server) => {
        await send(sink)
        await send(sink)
        expect(lookups).toEqual(['hooks.example'])
        expect(server.arrived).toHaveLength(2)
        expect(server.arrived[0]?.headers.host).toBe(`hooks.example:${server.port}`)
      },
    )
  })

  it('checks again when a name changes its address', async () => {
    const { lookup, lookups } = resolver(['127.0.0.1'], ['127.0.0.2'])
    const server = await new TestServer().listen('0.0.0.0')
    server.responses = [respond(200, '', { connection: 'close' })]
    const sink = strict(`http://hooks.example:${server.port}`, { lookup, allow: ['127.0.0.1'] })
    try {
      await send(sink)
      expect(await failureOf(send(sink))).toMatchObject({ class: 'integration' })
      expect(lookups).toHaveLength(2)
      expect(server.arrived).toHaveLength(1)
    } finally {
      await sink.close()
      await server.close()
    }
  })

  it('uses only the allowed ones of several addresses', async () => {
    const server = await new TestServer().listen('0.0.0.0')
    server.responses = [respond(200)]
    const { lookup } = resolver(['127.0.0.2', '127.0.0.1', '::1'])
    const sink = strict(`http://hooks.example:${server.port}`, { lookup, allow: ['127.0.0.1'] })
    try {
      await send(sink)
      expect(server.arrived.map(({ address }) => address)).toEqual(['127.0.0.1'])
    } finally {
      await sink.close()
      await server.close()
    }
  })

  it('supports a resolver that returns one address', async () => {
    const one: LookupFunction = (_host, _options, callback) => callback(null, '127.0.0.1', 4)
    await onServer(
      respond(200),
      ({ port }) => strict(`http://hooks.example:${port}`, { lookup: one, allow: LOCAL }),
      (sink) => expect(send(sink)).resolves.toBeUndefined(),
    )
    const sink = strict('http://hooks.example:1', { lookup: one })
    expect(await failureOf(send(sink))).toMatchObject({ class: 'integration' })
  })

  it('an unknown name is a failure of class transient', async () => {
    const lost: LookupFunction = (_host, _options, callback) =>
      callback(Object.assign(new Error('getaddrinfo ENOTFOUND'), { code: 'ENOTFOUND' }), [])
    const sink = strict('http://hooks.example:1', { lookup: lost })
    expect(await failureOf(send(sink))).toMatchObject({ class: 'transient', code: 'ENOTFOUND' })
  })

  it.each([['127.0.0.0/8'], ['hooks.example'], ['HOOKS.example']])(
    'connects to a target that is allowed by %s',
    (entry) => {
      const { lookup } = resolver(['127.0.0.1'])
      return onServer(
        respond(200),
        ({ port }) => strict(`http://hooks.example:${port}`, { lookup, allow: [entry] }),
        (sink) => expect(send(sink)).resolves.toBeUndefined(),
      )
    },
  )

  it('an allowed name allows no other', async () => {
    const { lookup } = resolver(['127.0.0.1'])
    const sink = strict('http://other.example:1', { lookup, allow: ['hooks.example'] })
    expect(await failureOf(send(sink))).toMatchObject({ class: 'integration' })
    expect(() => strict('http://127.0.0.1:1', { allow: ['hooks.example'] })).toThrow(/not public/)
  })

  it('does not follow a redirect into the network', () =>
    on(
      {},
      async (sink, server) => {
        const error = await send(sink).catch((thrown: unknown) => thrown)
        expect(isRedriveError(error, 'REFUSED')).toBe(true)
        expect(server.arrived).toHaveLength(1)
      },
      respond(307, '', { location: 'http://169.254.169.254/latest/meta-data' }),
    ))
})
