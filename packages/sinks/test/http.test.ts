import { execFile } from 'node:child_process'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { createServer as createSecureServer } from 'node:https'
import type { Server } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { isRedriveError } from '@redrive/core'
import type { Sink } from '@redrive/runtime'
import { describe, expect, it } from 'vitest'
import { HttpError, type HttpOptions, loki, otlp, sentry, webhook } from '../src/index.ts'
import {
  type Answer,
  answer,
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
  readonly accepted: Answer
  readonly open: (url: string, options?: HttpOptions) => Sink
}

/** Everything that speaks HTTP behaves alike where the protocols say nothing. */
const KINDS: readonly Kind[] = [
  { name: 'loki', accepted: answer(204), open: (url, options) => loki({ url, ...options }) },
  { name: 'otlp', accepted: answer(200, '{}'), open: (url, options) => otlp({ url, ...options }) },
  {
    name: 'sentry',
    accepted: answer(200, '{"id":"x"}'),
    open: (url, options) => sentry({ dsn: `${url.replace('://', '://public@')}/1`, ...options }),
  },
  {
    name: 'webhook',
    accepted: answer(200),
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

/** 32 MB: more than the system's own buffers hold between two processes. */
const HUGE = Buffer.alloc(33_554_432, 'x')

/** An answer that is far too long, and whether all of it was taken. */
function huge(status: number) {
  const { promise: taken, resolve } = Promise.withResolvers<boolean>()
  const answers: Answer = (response) => {
    response.on('close', () => resolve(response.writableFinished))
    response.writeHead(status).end(HUGE)
  }
  return { answers, taken }
}

describe.each(KINDS)('$name over HTTP', ({ open, accepted }) => {
  const on = (
    answers: Answer | readonly Answer[],
    test: (sink: Sink, server: TestServer) => Promise<void>,
    options?: HttpOptions,
  ) => onServer(answers, ({ url }) => open(url, options), test)
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
    on(answer(status, 'because'), async (sink) => {
      const failure = await failureOf(send(sink))
      expect(failure).toMatchObject({ class: expected, code: `HTTP ${status}` })
      expect(failure.message).toMatch(/^127\.0\.0\.1:\d+ answered \d+: because/)
    }),
  )

  it.each([429, 503])('status %d waits as long as Retry-After says, in seconds', (status) =>
    on(answer(status, '', { 'retry-after': '7' }), async (sink) => {
      const { retryAfterMs = 0 } = await failureOf(send(sink))
      expect(Math.round(retryAfterMs / 100)).toBe(70)
    }),
  )

  it('waits as long as Retry-After says, as a date', () =>
    on(answer(503, '', { 'retry-after': new Date(AT + 9_000).toUTCString() }), async (sink) => {
      const { retryAfterMs } = await failureOf(send(sink), AT)
      // A date has no milliseconds.
      expect(retryAfterMs).toBe(9_000 - (AT % 1_000))
    }))

  it('is a failure of class transient when nobody listens', async () => {
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

  it('gives up with the reason of the signal when no answer comes', () => {
    const aborting = new AbortController()
    const reason = new Error('time is up')
    return on(
      () => aborting.abort(reason),
      async (sink) => {
        expect(await refusal(send(sink, aborting.signal))).toBe(reason)
      },
    )
  })

  it('asks nobody when the signal has fired already', () =>
    on(accepted, async (sink, server) => {
      expect((await refusal(send(sink, AbortSignal.abort(new Error('over'))))).message).toBe('over')
      expect(server.arrived).toEqual([])
    }))

  it('follows no redirect, and it is a failure of class integration', () =>
    on(answer(302, '', { location: 'http://169.254.169.254/latest' }), async (sink, server) => {
      const failure = await failureOf(send(sink))
      expect(failure.class).toBe('integration')
      expect(failure.message).toContain('redirects are not followed')
      expect(server.arrived).toHaveLength(1)
    }))

  it('reads an error only up to a bound, however much is sent', () => {
    const { answers, taken } = huge(503)
    return on(answers, async (sink) => {
      const { message } = await refusal(send(sink))
      expect(message.length).toBeLessThan(400)
      expect(await taken).toBe(false)
    })
  })

  it('tells the status of an error whose body never ends', () =>
    on(
      (response) => void response.writeHead(503).write('slow'),
      async (sink) => {
        expect(await failureOf(send(sink))).toMatchObject({ class: 'transient', code: 'HTTP 503' })
      },
    ))

  it('a batch that is not the first one answers like the first one after an error', () =>
    on([answer(503), accepted], async (sink) => {
      await refusal(send(sink))
      await expect(send(sink)).resolves.toBeUndefined()
    }))

  it('says that it is closed, and asks nobody any more', () =>
    on(accepted, async (sink, server) => {
      await sink.close()
      expect(isRedriveError(await refusal(send(sink)), 'CLOSED')).toBe(true)
      expect(server.arrived).toEqual([])
    }))

  it('sends the headers it was told to send', () =>
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

  it('is known by the name it was given, otherwise by its host', () =>
    on(accepted, async (sink, server) => {
      expect(sink.name).toContain(`127.0.0.1:${server.port}`)
      expect(open(server.url, { name: 'mine' }).name).toBe('mine')
    }))

  it('is sick while a gateway is', () =>
    on(answer(503), async (sink) => {
      expect(await failureOf(sink.healthCheck({ signal: never }))).toMatchObject({
        class: 'transient',
      })
    }))

  it('speaks TLS, and trusts only whom it was told to', async () => {
    const server = await new TestServer(
      createSecureServer({ cert, key }) as unknown as Server,
    ).listen()
    server.answers = [accepted]
    const url = `https://localhost:${server.port}`
    const [stranger, friend] = [open(url), open(url, { tls: { ca: cert } })]
    try {
      expect(await failureOf(send(stranger))).toMatchObject({ code: 'DEPTH_ZERO_SELF_SIGNED_CERT' })
      await send(friend)
      expect(server.arrived).toHaveLength(1)
    } finally {
      await Promise.all([stranger.close(), friend.close(), server.close()])
    }
  })
})

describe('what is accepted by its status alone', () => {
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

  it.each(byStatus)('$name reads a good answer only up to a bound', ({ open }) => {
    const { answers, taken } = huge(200)
    return onServer(
      answers,
      ({ url }) => open(url),
      async (sink) => {
        await sink.send([event()], { signal: never })
        expect(await taken).toBe(false)
      },
    )
  })
})

describe('credentials', () => {
  const echo: Answer = (response, { headers }) => {
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
      'a header with a word before it',
      ({ href: url }: URL) => loki({ url, headers: { authorization: 'Bearer hunter2' } }),
    ],
    ['a DSN', (url: URL) => sentry({ dsn: `http://hunter2:hunter2@${url.host}/1` })],
  ] as const)(
    '%s arrives, and is in no message, not even when the other side repeats it',
    (_, open) =>
      onServer(
        echo,
        ({ url }) => open(new URL(url)),
        async (sink, server) => {
          const error = await refusal(sink.send([event()], { signal: never }))
          expect(error).toBeInstanceOf(HttpError)
          const { authorization = '', ...rest } = server.arrived[0]?.headers ?? {}
          const told = `${Buffer.from(authorization.split(' ')[1] ?? '', 'base64').toString()}${authorization}${JSON.stringify(rest)}`
          expect(told).toContain('hunter2')
          const said = `${error.message}${error.stack}${JSON.stringify(error)}${sink.name}`
          expect(said).not.toContain('hunter2')
          expect(said).not.toContain(Buffer.from('me:hunter2').toString('base64'))
        },
      ),
  )
})

/** Of localhost, signed by itself. */
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
