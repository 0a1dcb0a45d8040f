import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, describe, expect, test } from 'vitest'
import { ApiError, createClient, PROBLEMS } from '../src/index.ts'
import { isMutation, ROUTES } from '../src/routes.ts'

interface ReceivedRequest {
  readonly method: string | undefined
  readonly url: string | undefined
  readonly headers: IncomingMessage['headers']
  readonly body: string
}

type Reply = (response: ServerResponse) => void

/** Starts a server that sends this reply and records the requests. */
async function serverThat(reply: Reply) {
  const got: ReceivedRequest[] = []
  const server = createServer((request, response) => {
    const pieces: Buffer[] = []
    request.on('data', (piece: Buffer) => pieces.push(piece))
    request.on('end', () => {
      const { method, url, headers } = request
      got.push({ method, url, headers, body: Buffer.concat(pieces).toString() })
      reply(response)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  afterAll(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, got }
}

const json =
  (value: unknown, status = 200, headers: Record<string, string> = {}): Reply =>
  (response) =>
    void response
      .writeHead(status, { 'content-type': 'application/json', ...headers })
      .end(JSON.stringify(value))

const ME = { person: 'ada', name: 'Ada', via: 'token', grants: [], canApproveOwn: false }
const ID = '01890000-0000-8000-8000-000000000001'

async function caught(work: Promise<unknown>): Promise<unknown> {
  try {
    return await work
  } catch (error) {
    return error
  }
}

describe('a call', () => {
  test('sends the token, and no headers that a read does not need', async () => {
    const { url, got } = await serverThat(json({ ...ME, more: 'than is known' }))
    const client = createClient({ url: `${url}/`, token: 'rdv_1', csrf: () => 'proof' })
    expect(await client.call('me', {})).toEqual(ME)
    expect(got[0]).toMatchObject({
      method: 'GET',
      url: '/api/v1/me',
      headers: { authorization: 'Bearer rdv_1', accept: 'application/json' },
    })
    expect(got[0]?.headers).not.toHaveProperty('idempotency-key')
    expect(got[0]?.headers).not.toHaveProperty('x-redrive-csrf')
    expect(got[0]?.headers).not.toHaveProperty('content-type')
  })

  test('sends a new Idempotency-Key for each mutation, or the given one', async () => {
    const { url, got } = await serverThat(json({ changed: 1, skippedCount: 0, skipped: [] }))
    const client = createClient({ url, csrf: () => 'proof' })
    const body = { ids: [ID] }
    await client.call('discard', { body })
    await client.call('discard', { body })
    await client.call('discard', { body }, { idempotencyKey: 'mine' })
    const keys = got.map(({ headers }) => headers['idempotency-key'])
    expect(new Set(keys).size).toBe(3)
    expect(keys[2]).toBe('mine')
    expect(got[0]).toMatchObject({
      headers: { 'x-redrive-csrf': 'proof' },
      body: JSON.stringify(body),
    })
  })

  test('escapes parameters in the path', async () => {
    const { url, got } = await serverThat((response) => void response.writeHead(204).end())
    const client = createClient({ url })
    const source = '../a b/ü?#%'
    await client.call('setSchema', { params: { source }, body: { schema: {} } })
    expect(got[0]?.url).toBe(`/api/v1/sources/${encodeURIComponent(source)}/schema`)
  })

  test('returns the ETag and sends it with a change', async () => {
    const { url, got } = await serverThat(json(ME, 200, { etag: '"1"' }))
    const client = createClient({ url })
    expect((await client.ask('me', {})).etag).toBe('"1"')
    const change = { params: { id: ID }, body: {}, ifMatch: '"1"' }
    await caught(client.call('changeGroup', change))
    expect(got[1]?.headers['if-match']).toBe('"1"')
  })

  test('sends a weak ETag of a proxy as a strong one', async () => {
    const { url, got } = await serverThat(json(ME))
    const change = { params: { id: ID }, body: {}, ifMatch: 'W/"1"' }
    await caught(createClient({ url }).call('changeGroup', change))
    expect(got[0]?.headers['if-match']).toBe('"1"')
  })

  test('does not follow redirects, so that the token stays secret', async () => {
    const other = await serverThat(json(ME))
    const { url } = await serverThat(
      (response) => void response.writeHead(302, { location: other.url }).end(),
    )
    expect(await caught(createClient({ url, token: 'rdv_1' }).call('me', {}))).toBeInstanceOf(Error)
    expect(other.got).toEqual([])
  })

  test('fails when the response has an unexpected shape', async () => {
    const { url } = await serverThat(json({ person: 1 }))
    const error = await caught(createClient({ url }).call('me', {}))
    expect(error).toBeInstanceOf(Error)
    expect(error).not.toBeInstanceOf(ApiError)
  })
})

describe('a problem', () => {
  test('has the code of the server, and its message contains all problems', async () => {
    const problem = {
      type: 'urn:redrive:problem:invalid',
      title: 'Invalid request',
      status: 400,
      code: 'invalid',
      detail: 'The request is not valid.',
      problems: ['a: one', 'b: two'],
      requestId: 'r1',
    }
    const { url } = await serverThat(json(problem, 400))
    const error = (await caught(createClient({ url }).call('me', {}))) as ApiError
    expect(error).toBeInstanceOf(ApiError)
    expect(error.code).toBe('invalid')
    expect(error.problem).toEqual(problem)
    expect(error.message).toBe('The request is not valid.\n- a: one\n- b: two')
  })

  test('of a proxy is reported as an unknown server', async () => {
    const { url } = await serverThat(
      (response) => void response.writeHead(502, { 'x-request-id': 'r2' }).end('<h1>Bad Gateway'),
    )
    const error = (await caught(createClient({ url }).call('me', {}))) as ApiError
    expect(error.problem).toMatchObject({ status: 502, code: 'internal', requestId: 'r2' })
    expect(error.message).toContain('address of a Redrive server')
  })
})

describe('an HTML page of a proxy', () => {
  const page =
    (type: string): Reply =>
    (response) =>
      void response.writeHead(200, { 'content-type': type }).end('<!doctype html><h1>Log in')

  test.each(['text/html; charset=utf-8', 'text/plain'])(
    'with the type %s is an error',
    async (type) => {
      const { url } = await serverThat(page(type))
      const error = (await caught(createClient({ url }).call('me', {}))) as ApiError
      expect(error).toBeInstanceOf(ApiError)
      expect(error.message).toContain('returned status 200 with a body that is not JSON')
      expect(error.message).toContain('no proxy requires a login')
    },
  )

  test('is an error in a stream', async () => {
    const { url } = await serverThat(page('text/html'))
    const events = createClient({ url }).stream('watchReplay', { params: { id: ID } })
    expect(String(await caught(events.next()))).toContain('no proxy requires a login')
  })
})

describe('a stream', () => {
  const run = { id: ID, state: 'running' }

  test('of lines joins chunks of any size', async () => {
    const { url } = await serverThat((response) => {
      const text = `${JSON.stringify({ ...ME, person: 'ü1' })}\n${JSON.stringify(ME)}\n`
      const bytes = Buffer.from(text)
      const send = (at: number) => {
        if (at >= bytes.length) return void response.end()
        response.write(bytes.subarray(at, at + 7), () => setImmediate(send, at + 7))
      }
      response.writeHead(200)
      send(0)
    })
    const seen: unknown[] = []
    const lines = createClient({ url }).stream('exportDeadLetters', {})
    const error = await caught(
      (async () => {
        for await (const one of lines) seen.push(one)
      })(),
    )
    // The values are not dead letters, so the first one is rejected after it was read completely.
    expect(String(error)).toContain('group')
    expect(seen).toEqual([])
  })

  test('of events ignores comments and event names', async () => {
    const text = `: beat\n\nevent: run\ndata: ${JSON.stringify(run)}\n\n`
    const { url } = await serverThat((response) => void response.writeHead(200).end(text))
    const events = createClient({ url }).stream('watchReplay', { params: { id: ID } })
    const error = await caught(events.next())
    // The value is not a run, so it is rejected. A comment would have failed earlier, because it is not JSON.
    expect(String(error)).toContain('hash')
  })

  test('ends when its signal fires', async () => {
    const { url } = await serverThat((response) => void response.writeHead(200).write(': beat\n\n'))
    const stop = new AbortController()
    const events = createClient({ url }).stream(
      'watchReplay',
      { params: { id: ID } },
      { signal: stop.signal },
    )
    const next = caught(events.next())
    stop.abort()
    expect(await next).toMatchObject({ name: 'AbortError' })
  })
})

describe('the table of routes', () => {
  test('contains each method and path once, and a parameter for each name in a path', () => {
    const all = Object.values(ROUTES)
    expect(new Set(all.map(({ method, path }) => `${method} ${path}`)).size).toBe(all.length)
    for (const route of all) {
      const names = [...route.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name)
      const params = 'params' in route ? Object.keys(route.params.shape) : []
      expect(params).toEqual(names)
    }
  })

  test('has bodies only for mutations, and problem statuses from 400 to 599', () => {
    const withBody = Object.values(ROUTES).filter((route) => 'body' in route)
    expect(withBody.every(isMutation)).toBe(true)
    expect(Object.values(PROBLEMS).every((status) => status >= 400 && status < 600)).toBe(true)
  })
})
