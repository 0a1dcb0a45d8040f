import { connect } from 'node:net'
import { gzipSync } from 'node:zlib'
import { memoryOf } from '../../harness/process.ts'
import type { Scenario } from '../../harness/scenario.ts'
import { asking, isOk } from './ask.ts'
import { attack, type Scene } from './attack.ts'
import { staysLive } from './live.ts'
import type { Run } from './runs.ts'
import type { Target } from './target.ts'

const MIB = 1_048_576
const BODY_BYTES = MIB
const PLAN_BYTES = 12 * MIB
const HEADER_BYTES = 16_384
const URL_MAX = 8_192

/**
 * Sends ten times the limit of everything. The server must reject it in bounded memory and still
 * respond to other callers.
 */
export const BOMBS: Scenario = attack(
  'bombs',
  'bodies, headers, addresses and JSON of ten times the limit',
  async (scene) => {
    const { target, tries } = scene
    const bombs = bombsFor(target)
    const before = memoryOf(target.server).now
    let peak = before
    await staysLive(scene, async () => {
      for (const { what, head, body } of bombs) {
        const status = await thrown(target.server.url, head, body)
        peak = Math.max(peak, memoryOf(target.server).now)
        tries.note(`${what} returns ${status}`, !REFUSED.includes(status))
      }
      await deep(scene)
      await endless(scene)
    })
    const grown = peak - before
    tries.note(`the memory grew by ${Math.round(grown / MIB)} MiB`, grown > GROWTH_MAX)
    tries.note(
      'the server is no longer ready',
      !isOk(await asking(target.server.url)('GET', '/readyz')),
    )
  },
)

/**
 * Cut off without a response, or rejected unread. 404 is not in the list, because it means that the
 * server did a lookup.
 */
const REFUSED = [0, 400, 413, 414, 415, 431]
const ID = '00000000-0000-4000-8000-000000000000'

/** 256 MiB: the largest plan as bytes, as text and as parsed objects, several times. */
const GROWTH_MAX = 256 * MIB

interface Bomb {
  readonly what: string
  readonly head: readonly string[]
  readonly body?: string | Buffer
}

function bombsFor({ as }: Target): readonly Bomb[] {
  const { authorization = '' } = as.root.credentials
  const post = (path: string, body: string | Buffer, ...more: readonly string[]) => ({
    head: [
      `POST ${path} HTTP/1.1`,
      `authorization: ${authorization}`,
      'content-type: application/json',
      `content-length: ${Buffer.byteLength(body)}`,
      'idempotency-key: 1',
      ...more,
    ],
    body,
  })
  const get = (path: string, ...more: readonly string[]) => ({
    head: [`GET ${path} HTTP/1.1`, `authorization: ${authorization}`, ...more],
  })
  // Only its size is wrong.
  const filler = (bytes: number) => `{"ids":["${ID}"]${' '.repeat(bytes)}}`
  const planFiller = (bytes: number) => `{"selection":{"ids":["${ID}"]}${' '.repeat(bytes)}}`
  const deep = (levels: number) => `${'['.repeat(levels)}${']'.repeat(levels)}`
  const discard = '/api/v1/dead-letters/discard'
  const schema = '/api/v1/sources/orders/schema'
  const put = (body: string) => {
    const { head } = post(schema, body)
    return { head: [`PUT ${schema} HTTP/1.1`, ...head.slice(1)], body }
  }
  const plan = (levels: number) =>
    `{"selection":{"ids":["${ID}"]},"change":{"patch":[{"op":"add","path":"/a","value":${deep(levels)}}]}}`
  const large = filler(10 * BODY_BYTES)
  const chunks = `${large.length.toString(16)}\r\n${large}\r\n0\r\n\r\n`
  return [
    { what: 'a body of ten times the limit', ...post(discard, filler(10 * BODY_BYTES)) },
    {
      what: 'a plan of ten times the limit',
      ...post('/api/v1/replays', planFiller(10 * PLAN_BYTES)),
    },
    {
      what: 'a body of ten times the limit, in chunks',
      head: [
        ...post(discard, '').head.filter((line) => !line.startsWith('content-length')),
        'transfer-encoding: chunked',
      ],
      body: chunks,
    },
    {
      what: 'a body that unpacks to ten times the limit',
      ...post(discard, gzipSync(filler(10 * BODY_BYTES)), 'content-encoding: gzip'),
    },
    {
      what: 'headers of ten times the limit',
      ...get('/api/v1/me', `x: ${'x'.repeat(10 * HEADER_BYTES)}`),
    },
    {
      what: 'ten thousand headers',
      ...get('/api/v1/me', ...Array.from({ length: 10_000 }, (_, at) => `x${at}: 1`)),
    },
    {
      what: 'an address of ten times the limit',
      ...get(`/api/v1/groups?text=${'x'.repeat(10 * URL_MAX)}`),
    },
    {
      what: 'an address a little above the limit',
      ...get(`/api/v1/groups?text=${'x'.repeat(URL_MAX)}`),
    },
    {
      what: 'ten thousand names in a query',
      ...get(
        `/api/v1/groups?${Array.from({ length: 10_000 }, (_, at) => at.toString(36)).join('&')}`,
      ),
    },
    {
      what: 'two thousand values of one name',
      ...get(`/api/v1/groups?${'text&'.repeat(1_500)}`),
    },
    { what: 'JSON of a hundred thousand levels', ...post(discard, deep(100_000)) },
    { what: 'a schema of a hundred thousand levels', ...put(`{"schema":{"a":${deep(100_000)}}}`) },
    { what: 'a patch of a hundred thousand levels', ...post('/api/v1/replays', plan(100_000)) },
    { what: 'a patch of five million levels', ...post('/api/v1/replays', plan(5_000_000)) },
    {
      what: 'a thousand and one ids of a thousand',
      ...post(
        discard,
        JSON.stringify({
          ids: Array.from({ length: 10_000 }, () => ID),
        }),
      ),
    },
    {
      what: 'a plan with half a million overrides',
      ...post(
        '/api/v1/replays',
        JSON.stringify({ selection: { ids: [ID] }, overrides: Array(500_000).fill('too_old') }),
      ),
    },
    {
      what: 'JSON with a `__proto__` field',
      ...post(discard, '{"__proto__":{"ids":[]},"ids":[]}'),
    },
  ]
}

/** Stores a message that is deeply nested itself. No Redrive limit applies when it is sent. */
async function deep({ target, tries }: Scene): Promise<void> {
  const { as, queues, pool } = target
  const levels = 100_000
  const body = `{"order":${'['.repeat(levels)}${']'.repeat(levels)}}`
  const [id = ''] = await queues.kill(pool, 'orders', [{ body }])
  const responses = [
    await as.root('GET', `/api/v1/dead-letters/${id}`),
    await as.root('GET', `/api/v1/dead-letters/${id}/payload?reason=test`),
    await as.root('GET', `/api/v1/dead-letters?filter=after:0%20json:${'/0'.repeat(400)}%3D1`),
  ]
  const headers = { 'if-match': responses[0]?.headers.get('etag') ?? '' }
  const schema = { type: 'order.placed', schema: { type: 'object' } }
  responses.push(await as.root('PUT', '/api/v1/sources/orders/schema', { body: schema }))
  const changes = [
    { patch: [{ op: 'add', path: '/x', value: 1 }] },
    { patch: [{ op: 'copy', from: '/order', path: '/x' }] },
    { edit: Buffer.from(body).toString('base64') },
  ]
  for (const change of changes) {
    const plan = { selection: { ids: [id] }, change }
    responses.push(await as.root('POST', '/api/v1/replays', { body: plan, headers }))
  }
  for (const [at, { status, text }] of responses.entries()) {
    tries.note(`a deeply nested message makes request ${at} fail: ${status} ${text}`, status >= 500)
  }
}

/** Sets a schema whose pattern never ends on this text. */
async function endless({ target, tries }: Scene): Promise<void> {
  const { as, queues, pool } = target
  const type = 'endless'
  const schema = { properties: { order: { type: 'string', pattern: '^(a+)+$' } } }
  const kept = await as.root('PUT', '/api/v1/sources/orders/schema', { body: { type, schema } })
  const body = JSON.stringify({ order: `${'a'.repeat(60)}!` })
  const ids = await queues.kill(pool, 'orders', [{ type, body }])
  const response = await as.alice('POST', '/api/v1/replays', { body: { selection: { ids } } })
  const isPlanned = isOk(response) && response.json<Run>().counts.planned > 0
  tries.note(`a plan skips a pattern without end (${kept.status}): ${response.status}`, isPlanned)
  tries.note(`a pattern without end makes a plan fail: ${response.text}`, response.status >= 500)
}

/** Returns the status, or 0 when the connection was cut off. */
function thrown(url: string, head: readonly string[], body: string | Buffer = ''): Promise<number> {
  const { hostname, port, host } = new URL(url)
  return new Promise((resolve) => {
    const socket = connect(Number(port), hostname)
    let text = ''
    const end = () => {
      socket.destroy()
      resolve(Number(/^HTTP\/1\.1 (\d{3})/.exec(text)?.[1] ?? 0))
    }
    socket.setEncoding('latin1').setTimeout(PATIENCE_MS, end)
    socket.on('data', (chunk: string) => {
      text += chunk
      if (text.includes('\r\n\r\n')) end()
    })
    // The server may close while we are still sending. A status received before that counts.
    socket.on('error', end).on('close', end)
    const [first = '', ...rest] = head
    socket.write([first, `host: ${host}`, ...rest, 'connection: close', '', ''].join('\r\n'))
    socket.write(body)
  })
}

const PATIENCE_MS = 20_000
