import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import { text } from 'node:stream/consumers'
import { type ApiError, PROBLEMS } from '@redrive/api'
import type { Catalog } from '@redrive/catalog'
import { RedriveError } from '@redrive/core'
import { until } from '@redrive/testing'
import { describe, expect, test } from 'vitest'
import { refusalOf } from '../src/http/problem.ts'
import { CSRF, database, fill, staged, type StageOptions } from './http-stage.ts'

const pool = await database('redrive_server_problems')
const stage = await staged(pool)

type Problem = Record<string, unknown>
async function problemOf(answer: Response): Promise<Problem> {
  expect(answer.headers.get('content-type')).toBe('application/problem+json; charset=utf-8')
  const problem = (await answer.json()) as Problem
  expect(problem['status']).toBe(answer.status)
  expect(problem['type']).toBe(`urn:redrive:problem:${String(problem['code'])}`)
  expect(problem['requestId']).toBe(answer.headers.get('x-request-id'))
  expect(PROBLEMS[problem['code'] as keyof typeof PROBLEMS]).toBe(answer.status)
  return problem
}

const discard = '/api/v1/dead-letters/discard'
const mutation = (body: string, headers: Record<string, string> = {}) => ({
  method: 'POST',
  headers: {
    'idempotency-key': crypto.randomUUID(),
    'content-type': 'application/json',
    ...headers,
  },
  body,
})

describe('an invalid request', () => {
  test('is rejected with a list of all problems', async () => {
    const answer = await stage.ask('operator', '/api/v1/groups?limit=0&order=size&stats=open')
    expect(await problemOf(answer)).toMatchObject({
      code: 'invalid',
      problems: [
        expect.stringContaining('query.order'),
        expect.stringContaining('query.limit'),
        expect.stringContaining('stats'),
      ],
    })
  })

  test('is rejected with two hosts', async () => {
    const sent = get(`${stage.url}/livez`, { headers: ['Host', 'a', 'HOST', 'b'], setHost: false })
    const [answer] = (await once(sent, 'response')) as [IncomingMessage]
    expect(answer.statusCode).toBe(400)
    expect(JSON.parse(await text(answer))).toMatchObject({
      code: 'invalid',
      detail: 'Expected one header "host". Check the proxy.',
    })
  })

  test('is rejected when the body is nested too deeply, not counting brackets in texts', async () => {
    const nested = (levels: number) => `{"ids":${'['.repeat(levels)}${']'.repeat(levels)}}`
    const problem = async (body: string) =>
      problemOf(await stage.ask('operator', discard, mutation(body)))
    expect((await problem(nested(101)))['detail']).toContain('more than 100 levels')
    expect((await problem(nested(100_000)))['detail']).toContain('more than 100 levels')
    expect((await problem('['.repeat(1_000_000)))['detail']).toContain('more than 100 levels')
    expect((await problem(nested(99)))['detail']).not.toContain('levels')
    const texts = JSON.stringify({ ids: ['['.repeat(200), `\\"${'{'.repeat(200)}`] })
    expect((await problem(texts))['detail']).not.toContain('levels')
  })

  test('has a specific code: body, media type, size, URL, route', async () => {
    const ask = async (path: string, init?: RequestInit) =>
      (await problemOf(await stage.ask('operator', path, init)))['code']
    expect(await ask(discard, mutation('{'))).toBe('invalid')
    expect(await ask(discard, mutation('{"__proto__":{"a":1}}'))).toBe('invalid')
    expect(await ask(discard, mutation('a=1', { 'content-type': 'text/plain' }))).toBe(
      'unsupported_media_type',
    )
    expect(await ask(discard, mutation(JSON.stringify('x'.repeat(1_048_576))))).toBe('too_large')
    expect(await ask(`/api/v1/groups?text=${'x'.repeat(8_200)}`)).toBe('too_large')
    expect(await ask('/api/v1/nothing')).toBe('not_found')
    expect(await ask('/api/v1/groups/%E0%A4%A')).toBe('invalid')
    expect(await ask('/api/v1/groups/not-an-id')).toBe('invalid')
    expect(await ask('/api/v1/me', { method: 'DELETE' })).toBe('not_found')
  })

  test('is rejected when "text" would select what to change', async () => {
    const { ids: named, group: one } = await fill(stage.catalog, 'orders')
    const post = async (path: string, body: unknown) =>
      problemOf(await stage.ask('operator', path, mutation(JSON.stringify(body))))
    for (const path of [discard, '/api/v1/dead-letters/restore']) {
      for (const selection of [{ group: one }, { ids: named }, {}]) {
        expect(await post(path, { ...selection, text: 'declined' })).toMatchObject({
          code: 'invalid',
          problems: [
            expect.stringContaining('expected "ids", "group", or "selection" with "hash"'),
          ],
        })
      }
    }
    const decision = { ids: named, as: 'open', text: 'declined' }
    expect(await post('/api/v1/dead-letters/outcomes', decision)).toMatchObject({
      code: 'invalid',
      problems: [expect.stringContaining('either "ids" or "filter", and no other field')],
    })
    expect(await stage.catalog.group(one)).toMatchObject({ openCount: 1 })
  })

  test('has a larger size limit for a plan', async () => {
    const { ids } = await fill(stage.catalog, 'orders')
    const edit = Buffer.alloc(3_000_000).toString('base64')
    const body = JSON.stringify({ selection: { ids }, change: { edit } })
    const answer = await stage.ask('operator', '/api/v1/replays', mutation(body))
    expect((await problemOf(answer))['code']).toBe('if_match_missing')
  })

  test('is rejected before the body is read when the caller is unknown', async () => {
    const answer = await stage.ask(undefined, discard, mutation('{'))
    expect((await problemOf(answer))['code']).toBe('unauthenticated')
    expect(answer.headers.get('www-authenticate')).toBe('Bearer')
  })
})

const { ids, group } = await fill(stage.catalog, 'orders')
const run = await stage.catalog.replays.plan({ selection: { ids }, by: 'planner' })
const { etag = '' } = await stage.as('operator').ask('getGroup', { params: { id: group } })

describe('a time that no calendar has', () => {
  test.each([
    ['a filter', '?filter=after:999999999d', 'after: expected a timestamp in epoch ms'],
    [
      'a cursor',
      `?filter=after:1d&cursor=9999999999999999_${run.id}`,
      'cursor: expected "nextCursor"',
    ],
  ])('is reported as invalid in %s', async (_, query, detail) => {
    expect(
      await problemOf(await stage.ask('admin', `/api/v1/dead-letters${query}`, {})),
    ).toMatchObject({
      code: 'invalid',
      detail: expect.stringContaining(detail) as unknown,
    })
  })
})

describe('a value that the database rejects', () => {
  const write = (method: string, body: unknown) => ({
    ...mutation(JSON.stringify(body), { 'if-match': etag }),
    method,
  })
  const patch = [{ op: 'replace', path: '/order', value: 'a\0b' }]

  test.each([
    ['a position', `/api/v1/replays/${run.id}/items?after=3000000000`, {}],
    ['a name', '/api/v1/audit?person=a%00b', {}],
    [
      'a change',
      `/api/v1/groups/${group}`,
      write('PATCH', { state: 'muted', mutedUntil: 1e300 }),
      group,
    ],
    ['a patch', '/api/v1/replays', write('POST', { selection: { ids }, change: { patch } })],
    ['a schema', '/api/v1/sources/orders/schema', write('PUT', { schema: { title: 'a\0b' } })],
  ] as const)('is reported as invalid: %s', async (_, path, init, subject?: string) => {
    for (const _time of ['first', 'again with the same key']) {
      const answer = await stage.ask('admin', path, init)
      expect(await problemOf(answer)).toMatchObject({
        code: 'invalid',
        detail: expect.stringContaining('out of range or contains a character') as unknown,
      })
    }
    if (subject === undefined) return
    const { entries } = await stage.audit.read({ subject })
    expect(entries.map(({ outcome, facts }) => [outcome, facts['because']])).toEqual([
      ['refused', 'invalid'],
      ['requested', undefined],
      ['refused', 'invalid'],
      ['requested', undefined],
    ])
  })

  test('is not logged', () => {
    const lines = stage.logged.filter((line) => line.includes('the database rejected a value'))
    expect(lines.length).toBeGreaterThan(0)
    expect(lines.join()).not.toMatch(/1e\+?300/)
  })
})

describe('an internal error', () => {
  test('is logged with its request id and not revealed in the response', async () => {
    const failing = await staged(pool, {
      desk: (made) => ({
        ...made,
        handlers: {
          ...made.handlers,
          me: () => Promise.reject(new Error('password of the database is hunter2')),
        },
      }),
    })
    const answer = await failing.ask('viewer', '/api/v1/me')
    const problem = await problemOf(answer)
    expect(problem['code']).toBe('internal')
    expect(JSON.stringify(problem)).not.toContain('hunter2')
    const line = failing.logged.find((one) => one.includes(String(problem['requestId'])))
    expect(line).toContain('hunter2')
  })

  test('is "unavailable" with a retry time when the database is unreachable', () => {
    const problem = refusalOf(new RedriveError('UNREACHABLE', 'connect 10.0.0.1 refused'))
    expect([problem.code, problem.retryAfterMs]).toEqual(['unavailable', 5_000])
    expect(problem.message).not.toContain('10.0.0.1')
    expect(refusalOf(new RedriveError('REFUSED', 'too long')).code).toBe('too_broad')
    expect(refusalOf(new RedriveError('OUTCOME_UNKNOWN', 'who knows')).code).toBe('internal')
    expect(refusalOf(undefined).code).toBe('internal')
  })

  test('cannot reveal fields that are not part of the API', async () => {
    const { ids } = await fill(stage.catalog, 'orders')
    const answer = await stage.ask('operator', `/api/v1/dead-letters/${ids[0]}`)
    expect(Object.keys((await answer.json()) as object)).not.toContain('drained')
  })
})

describe('while the audit log cannot be written', () => {
  test('no mutation runs and no payload is returned', async () => {
    const { ids } = await fill(stage.catalog, 'orders')
    const broken = await staged(pool, { write: () => Promise.reject(new Error('disk full')) })
    const params = { id: ids[0] ?? '' }
    const admin = broken.as('admin')
    const requests = [
      () => admin.call('discard', { body: { ids: [...ids] } }),
      () => admin.call('getPayload', { params, query: { reason: 'ticket 7' } }),
      () => admin.call('getDeadLetter', { params }),
      () => broken.as('viewer').call('discard', { body: { ids: [...ids] } }),
    ]
    for (const request of requests) {
      await expect(request()).rejects.toSatisfy(
        (error) => (error as ApiError).code === 'unavailable',
      )
    }
    const viewed = await broken.as('viewer').call('getDeadLetter', { params })
    expect(viewed).toMatchObject({ status: 'open', version: 0, body: { isHidden: true } })
  })

  /** Starts a server that cannot write the first audit entry with this outcome. */
  const halfWritten = (outcome: 'done' | 'refused' | 'failed', more: StageOptions = {}) => {
    let mustFail = true
    return staged(pool, {
      ...more,
      write: (entry, write) => {
        if (entry.outcome !== outcome || !mustFail) return write(entry)
        mustFail = false
        return Promise.reject(new Error('disk full'))
      },
    })
  }
  const outcomesOf = async (subject: string) =>
    (await stage.audit.read({ subject })).entries.map(({ outcome }) => outcome)

  test('a completed mutation returns its response and is audited later', async () => {
    const { ids } = await fill(stage.catalog, 'orders')
    const half = await halfWritten('done')
    const request = mutation(JSON.stringify({ ids }))
    const first = await half.ask('admin', discard, request)
    expect([first.status, await first.json()]).toEqual([
      200,
      { changed: 1, skippedCount: 0, skipped: [] },
    ])
    expect(half.logged.join('')).toContain('Write failed, retrying: the audit entry')
    const again = await half.ask('admin', discard, request)
    expect(again.headers.get('idempotency-replayed')).toBe('true')
    await until('both audit entries', () => outcomesOf(ids[0] ?? ''), {
      accept: (all) => all.join() === 'done,requested',
    })
  })

  test('a rejected mutation returns its own error', async () => {
    const { ids } = await fill(stage.catalog, 'orders')
    const run = await stage.catalog.replays.plan({ selection: { ids }, by: 'planner' })
    const half = await halfWritten('refused')
    const pause = half.as('admin').call('pauseReplay', { params: { id: run.id } })
    await expect(pause).rejects.toMatchObject({ code: 'conflict' })
    await until('both audit entries', () => outcomesOf(run.id), {
      accept: (all) => all.join() === 'refused,requested',
    })
  })

  test('a failed mutation returns its own error', async () => {
    const { ids } = await fill(stage.catalog, 'orders')
    const failing = (made: Catalog) =>
      new Proxy(made, {
        get: (target, name: keyof Catalog) => {
          if (name === 'discard') return () => Promise.reject(new Error('a fault'))
          const one = target[name]
          return typeof one === 'function' ? one.bind(target) : one
        },
      })
    const half = await halfWritten('failed', { catalog: failing })
    const response = half.as('admin').call('discard', { body: { ids: [...ids] } })
    await expect(response).rejects.toMatchObject({ code: 'internal' })
    await until('both audit entries', () => outcomesOf(ids[0] ?? ''), {
      accept: (all) => all.join() === 'failed,requested',
    })
  })
})

describe('too many requests', () => {
  test('of one caller are rejected, and requests of other callers succeed', async () => {
    const narrow = await staged(pool, { limits: { requestsPerMinute: 3 } })
    const ask = (who: string) => narrow.ask(who, '/api/v1/me')
    for (let count = 0; count < 3; count += 1) expect((await ask('viewer')).status).toBe(200)
    const answer = await ask('viewer')
    expect((await problemOf(answer))['code']).toBe('too_many_requests')
    expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0)
    expect((await ask('operator')).status).toBe(200)
  })

  test('of one address are rejected before authentication', async () => {
    const narrow = await staged(pool, { limits: { requestsPerMinute: 1 } })
    const statuses = []
    for (let count = 0; count < 6; count += 1) {
      statuses.push((await narrow.ask(undefined, '/api/v1/me')).status)
    }
    expect(statuses).toEqual([401, 401, 401, 401, 401, 429])
  })
})

describe('every response', () => {
  test('is not cached, not readable by other sites, and has a request id', async () => {
    const paths = ['/api/v1/me', '/api/v1/nothing', '/api/v1/openapi.json', '/api/reference/']
    for (const path of paths) {
      const { headers } = await stage.ask('viewer', path, {
        headers: { origin: 'https://evil.test' },
      })
      expect(headers.get('cache-control')).toBe('no-store')
      expect(headers.get('x-content-type-options')).toBe('nosniff')
      expect(headers.get('access-control-allow-origin')).toBeNull()
      expect(headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/)
    }
  })

  test('is logged without query, headers and body', async () => {
    await stage.ask('viewer', '/api/v1/groups?text=card-4111', {
      headers: { authorization: 'Bearer rdv_secret', cookie: 'a=b' },
    })
    const log = stage.logged.join('')
    expect(log).toContain('"operation":"listGroups"')
    expect(log).not.toMatch(/card-4111|rdv_secret|a=b/)
  })

  test('of the reference page loads nothing from other sites', async () => {
    const page = await stage.ask(undefined, '/api/reference/')
    expect(page.status).toBe(200)
    expect(await page.text()).not.toMatch(/(?:src|href)="(?:https?:)?\/\//)
    const policy = page.headers.get('content-security-policy') ?? ''
    expect(policy).toMatch(/script-src 'self' 'sha256-[^']+';/)
    expect(policy).toContain("default-src 'none'")
    const api = await stage.ask('viewer', '/api/v1/me')
    expect(api.headers.get('content-security-policy')).not.toContain('unsafe-inline')
  })
})

describe('a session', () => {
  test('rejects mutations from another site or without the CSRF token', async () => {
    const { ids } = await fill(stage.catalog, 'orders')
    const send = (headers: Record<string, string>) =>
      stage.ask('session', discard, mutation(JSON.stringify({ ids }), headers))
    const ours = { origin: 'https://redrive.test', 'sec-fetch-site': 'same-origin' }
    const proof = { 'x-redrive-csrf': CSRF }
    expect((await send({ ...ours })).status).toBe(403)
    expect((await send({ ...ours, ...proof, origin: 'https://evil.test' })).status).toBe(403)
    expect((await send({ ...proof })).status).toBe(403)
    expect((await send({ ...ours, ...proof })).status).toBe(200)
    expect(await stage.as('session').call('me', {})).toMatchObject({ csrf: CSRF })
  })
})
