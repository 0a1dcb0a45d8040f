import { execFile } from 'node:child_process'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { createServer as createSecureServer } from 'node:https'
import type { Server } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable, pipeline } from 'node:stream'
import { promisify } from 'node:util'
import { isRedriveError } from '@redrive/core'
import type { Sink } from '@redrive/runtime'
import { describe, expect, it } from 'vitest'
import { HttpError, type HttpOptions, loki, otlp, sentry, webhook } from '../src/index.ts'
import {
  type Responder,
  respond,
  AT,
  event,
  failureOf,
  never,
  onServer,
  refusal,
  TestServer,
} from './world.ts'

const SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`

interface Kind {
  readonly name: string
  readonly accepted: Responder
  readonly open: (url: string, options?: HttpOptions) => Sink
}

/** Sinks that use HTTP behave the same where the protocols define nothing. */
const KINDS: readonly Kind[] = [
  { name: 'loki', accepted: respond(204), open: (url, options) => loki({ url, ...options }) },
  { name: 'otlp', accepted: respond(200, '{}'), open: (url, options) => otlp({ url, ...options }) },
  {
    name: 'sentry',
    accepted: respond(200, '{"id":"x"}'),
    open: (url, options) => sentry({ dsn: `${url.replace('://', '://public@')}/1`, ...options }),
  },
  {
    name: 'webhook',
    accepted: respond(200),
    open: (url, options) =>
      webhook({
        url,
        secret: SECRET,
        allowHttp: true,
        allow: ['127.0.0.1', 'localhost'],
        ...options,
      }),
  },
]

const { cert, key } = await certificate()

const CHUNK = Buffer.alloc(1_048_576, 'x')
/** 128 MB: more than the system's buffers between two processes, which can hold 36 MB. */
const CHUNKS = 128

function* chunks(): Generator<Buffer> {
  for (let count = 0; count < CHUNKS; count++) yield CHUNK
}

/** A response that is far too long, with a flag that shows whether all of it was read. */
function huge(status: number) {
  const { promise: taken, resolve } = Promise.withResolvers<boolean>()
  const responses: Responder = (response) => {
    response.writeHead(status)
    pipeline(Readable.from(chunks()), response, (error) => resolve(!error))
  }
  return { responses, taken }
}

describe.each(KINDS)('$name over HTTP', ({ open, accepted }) => {
  const on = (
    responses: Responder | readonly Responder[],
    test: (sink: Sink, server: TestServer) => Promise<void>,
    options?: HttpOptions,
  ) => onServer(responses, ({ url }) => open(url, options), test)
  const send = (sink: Sink, signal: AbortSignal = never) => sink.send([event()], { signal })

  it('keeps its connection from one batch to the next', () =>
    on(accepted, async (sink, server) => {
      for (let round = 0; round < 3; round++) await send(sink)
      expect(server.arrived).toHaveLength(3)
      expect(new Set(server.arrived.map(({ port }) => port)).size).toBe(1)
    }))

  it.each([
    [400, 'integration'],
    [401, 'integration'],
    [413, 'integration'],
    [429, 'transient'],
    [502, 'transient'],
    [503, 'transient'],
    [504, 'transient'],
  ] as const)('status %d is a failure of class %s', (status, expected) =>
    on(respond(status, 'because'), async (sink) => {
      const failure = await failureOf(send(sink))
      expect(failure).toMatchObject({ class: expected, code: `HTTP ${status}` })
      expect(failure.message).toMatch(/^127\.0\.0\.1:\d+ responded with \d+: because/)
    }),
  )

  it.each([429, 503])('status %d waits for the Retry-After time, in seconds', (status) =>
    on(respond(status, '', { 'retry-after': '7' }), async (sink) => {
      const { retryAfterMs = 0 } = await failureOf(send(sink))
      expect(Math.round(retryAfterMs / 100)).toBe(70)
    }),
  )

  it('waits for the Retry-After time, as a date', () =>
    on(respond(503, '', { 'retry-after': new Date(AT + 9_000).toUTCString() }), async (sink) => {
      const { retryAfterMs } = await failureOf(send(sink), AT)
      // A date has no milliseconds.
      expect(retryAfterMs).toBe(9_000 - (AT % 1_000))
    }))

  it('is a failure of class transient when no server listens', async () => {
    const server = await new TestServer().listen()
    const { url } = server
    await server.close()
    const failure = await failureOf(send(open(url)))
    expect(failure).toMatchObject({ class: 'transient', code: 'ECONNREFUSED' })
  })

  it('is a failure of class transient when the connection is reset', () =>
    on(
      (response) => response.socket?.resetAndDestroy(),
      async (sink) => {
        expect(await failureOf(send(sink))).toMatchObject({
          class: 'transient',
          code: 'ECONNRESET',
        })
      },
    ))

  it('rejects with the reason of the signal when no response comes', () => {
    const aborting = new AbortController()
    const reason = new Error('time is up')
    return on(
      () => aborting.abort(reason),
      async (sink) => {
        expect(await refusal(send(sink, aborting.signal))).toBe(reason)
      },
    )
  })

  it('sends no request when the signal has already fired', () =>
    on(accepted, async (sink, server) => {
      expect((await refusal(send(sink, AbortSignal.abort(new Error('over'))))).message).toBe('over')
      expect(server.arrived).toEqual([])
    }))

  it('follows no redirect, and it is a failure of class integration', () =>
    on(respond(302, '', { location: 'http://169.254.169.254/latest' }), async (sink, server) => {
      const failure = await failureOf(send(sink))
      expect(failure.class).toBe('integration')
      expect(failure.message).toContain('redirects are not followed')
      expect(server.arrived).toHaveLength(1)
    }))

  it('reads an error response only up to a limit', () => {
    const { responses, taken } = huge(503)
    return on(responses, async (sink) => {
      const { message } = await refusal(send(sink))
      expect(message.length).toBeLessThan(400)
      expect(await taken).toBe(false)
    })
  })

  it('reports the status of an error whose body never ends', () =>
    on(
      (response) => void response.writeHead(503).write('slow'),
      async (sink) => {
        expect(await failureOf(send(sink))).toMatchObject({ class: 'transient', code: 'HTTP 503' })
      },
    ))

  it('handles a later batch like the first one after an error', () =>
    on([respond(503), accepted], async (sink) => {
      await refusal(send(sink))
      await expect(send(sink)).resolves.toBeUndefined()
    }))

  it('rejects after a close, and sends no more requests', () =>
    on(accepted, async (sink, server) => {
      await sink.close()
      expect(isRedriveError(await refusal(send(sink)), 'CLOSED')).toBe(true)
      expect(server.arrived).toEqual([])
    }))

  it('sends the configured headers', () =>
    on(
      accepted,
      async (sink, server) => {
        await send(sink)
        expect(server.arrived[0]?.headers).toMatchObject({
          'x-team': 'shop',
          'user-agent': 'redrive',
        })
      },
      { headers: { 'x-team': 'shop' } },
    ))

  it('has the given name, otherwise its host', () =>
    on(accepted, async (sink, server) => {
      expect(sink.name).toContain(`127.0.0.1:${server.port}`)
      expect(open(server.url, { name: 'mine' }).name).toBe('mine')
    }))

  it('is unhealthy while a gateway fails', () =>
    on(respond(503), async (sink) => {
      if (sink.healthCheck === undefined) return
      expect(await failureOf(sink.healthCheck({ signal: never }))).toMatchObject({
        class: 'transient',
      })
    }))

  it('uses TLS, and trusts only the configured authority', async () => {
    const server = await new TestServer(
      createSecureServer({ cert, key }) as unknown as Server,
    ).listen()
    server.responses = [accepted]
    const url = `https://localhost:${server.port}`
    const [stranger, friend] = [open(url), open(url, { tls: { ca: cert } })]
    try {
      const failure = await failureOf(send(stranger))
      expect(failure).toMatchObject({ class: 'integration', code: 'REFUSED' })
      expect(failure.message).toContain('is not trusted (DEPTH_ZERO_SELF_SIGNED_CERT)')
      await send(friend)
      expect(server.arrived).toHaveLength(1)
    } finally {
      await Promise.all([stranger.close(), friend.close(), server.close()])
    }
  })
})

describe('sinks that need only the status', () => {
  const byStatus = KINDS.filter(({ name }) => name !== 'otlp' && name !== 'loki')

  it.each(byStatus)('$name accepts although the body never ends', ({ open }) =>
    onServer(
      (response) => void response.writeHead(200).write('{'),
      ({ url }) => open(url),
      async (sink) => {
        await expect(sink.send([event()], { signal: never })).resolves.toBeUndefined()
      },
    ),
  )

  it.each(byStatus)(
    '$name accepts although the signal fires after the status',
    async ({ open }) => {
      const aborting = new AbortController()
      const onResponse = () => setImmediate(() => aborting.abort())
      subscribe('http.client.response.finish', onResponse)
      await onServer(
        (response) => void response.writeHead(200).write('{'),
        ({ url }) => open(url),
        async (sink) => {
          await expect(sink.send([event()], aborting)).resolves.toBeUndefined()
          expect(aborting.signal.aborted).toBe(true)
        },
      ).finally(() => unsubscribe('http.client.response.finish', onResponse))
    },
  )

  it.each(byStatus)('$name reads a successful response only up to a limit', ({ open }) => {
    const { responses, taken } = huge(200)
    return onServer(
      responses,
      ({ url }) => open(url),
      async (sink) => {
        await sink.send([event()], { signal: never })
        expect(await taken).toBe(false)
      },
    )
  })
})

describe('credentials', () => {
  const echo: Responder = (response, { headers }) => {
    response.writeHead(401).end(JSON.stringify(headers))
  }

  it.each([
    ['a password in the address', (url: URL) => loki({ url: `http://me:hunter2@${url.host}` })],
    [
      'a password',
      ({ href: url }: URL) => loki({ url, auth: { user: 'me', password: 'hunter2' } }),
    ],
    ['a token', ({ href: url }: URL) => otlp({ url, auth: { token: 'hunter2' } })],
    ['a header', ({ href: url }: URL) => otlp({ url, headers: { 'api-key': 'hunter2' } })],
    [
      'a header with a scheme before the key',
      ({ href: url }: URL) => loki({ url, headers: { authorization: 'Bearer hunter2' } }),
    ],
    ['a DSN', (url: URL) => sentry({ dsn: `http://hunter2:hunter2@${url.host}/1` })],
  ] as const)(
    '%s is sent, and never appears in a message, even when the server repeats it',
    (_, open) =>
      onServer(
        echo,
        ({ url }) => open(new URL(url)),
        async (sink, server) => {
          const error = await refusal(sink.send([event()], { signal: never }))
          expect(error).toBeInstanceOf(HttpError)
          const { authorization = '', ...rest } = server.arrived[0]?.headers ?? {}
          const received = `${Buffer.from(authorization.split(' ')[1] ?? '', 'base64').toString()}${authorization}${JSON.stringify(rest)}`
          expect(received).toContain('hunter2')
          const output = `${error.message}${error.stack}${JSON.stringify(error)}${sink.name}`
          expect(output).not.toContain('hunter2')
          expect(output).not.toContain(Buffer.from('me:hunter2').toString('base64'))
        },
      ),
  )
})

/** Creates a self-signed certificate for localhost. */
async function certificate() {
  const folder = await mkdtemp(join(tmpdir(), 'redrive-tls-'))
  const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')]
  const name = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost']
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1']
  const args = ['req', '-x509', ...curve, '-nodes', '-days', '1', ...name, '-keyout', key]
  await promisify(execFile)('openssl', [...args, '-out', cert])
  const made = { cert: await readFile(cert, 'utf8'), key: await readFile(key, 'utf8') }
  await rm(folder, { recursive: true })
  return made
}
