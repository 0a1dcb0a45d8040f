import { randomUUID } from 'node:crypto'
import type { Operation } from '@redrive/api'
import { isMutation, type Route, ROUTES } from '@redrive/api/internal'
import type { Catalog } from '@redrive/catalog'
import { until } from '@redrive/testing'
import type { Pool, QueryConfig } from 'pg'
import { describe, expect, test } from 'vitest'
import { ProblemError } from '../src/access/problem-error.ts'
import { Idempotency } from '../src/http/idempotency.ts'
import { createRetryingWriter } from '../src/retry-write.ts'
import { database, fill, PEOPLE, staged } from './http-stage.ts'

const pool = await database('redrive_server_idempotency')
const stage = await staged(pool)

async function post(path: string, body: unknown, key: string | undefined, who = 'operator') {
  const headers: Record<string, string> = { 'content-type': 'application/json' }
  if (key !== undefined) headers['idempotency-key'] = key
  return stage.ask(who, path, { method: 'POST', headers, body: JSON.stringify(body) })
}

const codeOf = async (answer: Response) => ((await answer.json()) as { code: string }).code
const storedRows = async (key: string) =>
  (await pool.query<object>('select * from redrive_server.idempotency where key = $1', [key])).rows

describe('a mutation', () => {
  test('is rejected without a key', async () => {
    const { ids } = await fill(stage.catalog, 'orders')
    const answer = await post('/api/v1/dead-letters/discard', { ids }, undefined)
    expect(answer.status).toBe(400)
    expect(await codeOf(answer)).toBe('idempotency_key_missing')
    const odd = await post('/api/v1/dead-letters/discard', { ids }, 'a b')
    expect([odd.status, await codeOf(odd)]).toEqual([400, 'invalid'])
  })

  test('is applied once and returns the first response when it is repeated', async () => {
    const { ids } = await fill(stage.catalog, 'orders', 2)
    const key = randomUUID()
    const first = await post('/api/v1/dead-letters/discard', { ids }, key)
    expect(first.headers.get('idempotency-replayed')).toBeNull()
    const text = await first.text()
    expect(JSON.parse(text)).toEqual({ changed: 2, skippedCount: 0, skipped: [] })
    await stage.catalog.restore({ ids }, { by: 'planner' })
    const second = await post('/api/v1/dead-letters/discard', { ids }, key)
    expect(second.headers.get('idempotency-replayed')).toBe('true')
    expect([second.status, await second.text()]).toEqual([200, text])
    expect((await stage.catalog.deadLetter(ids[0] ?? ''))?.status).toBe('open')
  })

  test('returns the first status and ETag when it is repeated', async () => {
    const { ids } = await fill(stage.catalog, 'orders')
    const key = randomUUID()
    const [first, second] = [
      await post('/api/v1/replays', { selection: { ids } }, key),
      await post('/api/v1/replays', { selection: { ids } }, key),
    ]
    expect([first.status, second.status]).toEqual([201, 201])
    expect(second.headers.get('etag')).toBe(first.headers.get('etag'))
    expect(await second.json()).toEqual(await first.json())
  })

  test('is rejected with the key of a different request', async () => {
    const { ids, group } = await fill(stage.catalog, 'orders')
    const key = randomUUID()
    await post('/api/v1/dead-letters/discard', { ids }, key)
    const other = await post('/api/v1/dead-letters/discard', { group }, key)
    expect([other.status, await codeOf(other)]).toEqual([422, 'idempotency_key_reused'])
    const elsewhere = await post('/api/v1/dead-letters/restore', { ids }, key)
    expect(elsewhere.status).toBe(422)
    // Keys belong to a caller, so another caller can use the same key.
    const { ids: others } = await fill(stage.catalog, 'orders')
    const theirs = await post('/api/v1/dead-letters/discard', { ids: others }, key, 'admin')
    expect(theirs.status).toBe(200)
  })

  test('does not return its response to another credential of the same user', async () => {
    const { ids } = await fill(stage.catalog, 'orders', 2)
    const key = randomUUID()
    await post('/api/v1/dead-letters/discard', { ids }, key, 'agent')
    const owner = await post('/api/v1/dead-letters/discard', { ids }, key, 'owner')
    expect(owner.headers.get('idempotency-replayed')).toBeNull()
    expect(await owner.json()).toMatchObject({ changed: 0 })
  })

  test('can be retried with the same key after it was rejected', async () => {
    const { ids } = await fill(stage.catalog, 'orders')
    const key = randomUUID()
    const path = '/api/v1/dead-letters/discard'
    expect((await post(path, { ids }, key, 'viewer')).status).toBe(403)
    const run = await stage
      .as('operator')
      .call('planReplay', { body: { selection: { ids: [...ids] } } })
    const pause = `/api/v1/replays/${run.id}/pause`
    expect((await post(pause, undefined, key)).status).toBe(400)
    const refused = await stage.ask('operator', pause, {
      method: 'POST',
      headers: { 'idempotency-key': key },
    })
    expect([refused.status, await codeOf(refused)]).toEqual([409, 'conflict'])
    await stage.catalog.replays.approve(run.id, { hash: run.hash, by: 'another' })
    const again = await stage.ask('operator', pause, {
      method: 'POST',
      headers: { 'idempotency-key': key },
    })
    expect(again.status).toBe(200)
  })

  test('does not store a response with a secret and returns "conflict" when it is repeated', async () => {
    const key = randomUUID()
    const token = { name: 't', actions: ['view'], sources: ['orders'], days: 1 }
    const first = await post('/api/v1/tokens', token, key)
    const { secret } = (await first.json()) as { secret: string }
    expect(first.status).toBe(201)
    expect(JSON.stringify(await storedRows(key))).not.toContain(secret.slice(4))
    const second = await post('/api/v1/tokens', token, key)
    expect([second.status, await codeOf(second)]).toEqual([409, 'conflict'])
    expect((await stage.as('operator').call('listTokens', {})).tokens).toHaveLength(1)
  })
})

const logged: string[] = []
const insist = createRetryingWriter({ error: (_, text) => void logged.push(text) })
const mutation = (key: string, operation: Operation = 'discard') =>
  ({ caller: PEOPLE['operator'], key, operation, request: { ids: [] } }) as Parameters<
    Idempotency['once']
  >[0]
/** Changes the start time of a request. */
const setStart = (key: string, secondsAgo: number) =>
  pool.query(
    `update redrive_server.idempotency set taken_at = now() - $2 * interval '1 second' where key = $1`,
    [key, secondsAgo],
  )
const done = async () => ({ status: 200, text: '{}', etag: undefined })

describe('the outcome', () => {
  /** Returns an instance whose database once fails for a statement with this start. */
  function failingOnce(start: string): Idempotency {
    let mustFail = true
    const query = (config: QueryConfig) => {
      if (!mustFail || !config.text.trimStart().startsWith(start)) return pool.query(config)
      mustFail = false
      return Promise.reject(new Error('the connection broke'))
    }
    return new Idempotency({ query } as unknown as Pool, insist)
  }

  test('is returned when it cannot be stored, and stored later', async () => {
    const own = failingOnce('update')
    const key = randomUUID()
    expect(await own.once(mutation(key), done)).toMatchObject({ text: '{}', isReplayed: false })
    expect(logged.at(-1)).toBe(
      'Write failed, retrying: the outcome of discard for its Idempotency-Key.',
    )
    await until('the response is stored', () => storedRows(key), {
      accept: ([row]) => (row as { status: number | null }).status === 200,
    })
    expect(await own.once(mutation(key), done)).toMatchObject({ text: '{}', isReplayed: true })
  })

  test('is returned after a rejection when the key cannot be deleted, and the key is deleted later', async () => {
    const own = failingOnce('delete')
    const key = randomUUID()
    const refuse = () => Promise.reject(new ProblemError('conflict', 'not now'))
    await expect(own.once(mutation(key), refuse)).rejects.toThrow('not now')
    await until('the key is deleted', () => storedRows(key), {
      accept: (rows) => rows.length === 0,
    })
  })

  test('is "in_progress" after an error with an unknown result', async () => {
    const own = new Idempotency(pool, insist)
    const key = randomUUID()
    const broken = () => Promise.reject(new Error('the connection broke while it was committed'))
    await expect(own.once(mutation(key), broken)).rejects.toThrow('the connection broke')
    await expect(own.once(mutation(key), done)).rejects.toMatchObject({ code: 'in_progress' })
  })
})

describe('a repeated request', () => {
  test('is rejected with "in_progress" while the first one runs', async () => {
    const own = new Idempotency(pool, insist)
    const key = randomUUID()
    const { promise, resolve } = Promise.withResolvers<void>()
    let calls = 0
    const work = async () => {
      calls += 1
      await promise
      return done()
    }
    const both = [own.once(mutation(key), work), own.once(mutation(key), work)]
    await expect(
      Promise.any(
        both.map((one) =>
          one.then(
            () => 0,
            (error: unknown) => error,
          ),
        ),
      ),
    ).resolves.toMatchObject({
      code: 'in_progress',
      retryAfterMs: 1_000,
    })
    resolve()
    await Promise.allSettled(both)
    expect(calls).toBe(1)
  })

  /** Operations that are safe to repeat. */
  const REPEATABLE: readonly Operation[] = [
    'planReplay',
    'selectDeadLetters',
    'approveReplay',
    'cancelReplay',
    'revokeToken',
    'revokeSession',
  ]
  const others = (Object.entries(ROUTES) as [Operation, Route][])
    .filter(([name, route]) => isMutation(route) && !REPEATABLE.includes(name))
    .map(([name]) => name)

  test.each(REPEATABLE)(
    'runs %s again after a minute, and a late first response is not stored',
    async (operation) => {
      const own = new Idempotency(pool, insist)
      const key = randomUUID()
      const { promise, resolve } = Promise.withResolvers<void>()
      const slow = own.once(mutation(key, operation), async () => {
        await promise
        return { ...(await done()), text: '"late"' }
      })
      await until('the key is stored', () => storedRows(key), {
        accept: (rows) => rows.length === 1,
      })
      const again = () => own.once(mutation(key, operation), done)
      await setStart(key, 50)
      await expect(again()).rejects.toMatchObject({
        code: 'in_progress',
        message: expect.stringContaining('a retry runs it again') as unknown,
      })
      await setStart(key, 61)
      expect(await again()).toMatchObject({ text: '{}', isReplayed: false })
      resolve()
      await slow
      expect(await again()).toMatchObject({ text: '{}', isReplayed: true })
    },
  )

  test.each(others)('does not run an interrupted %s again', async (operation) => {
    const own = new Idempotency(pool, insist)
    const key = randomUUID()
    const broken = () => Promise.reject(new Error('the connection broke'))
    await expect(own.once(mutation(key, operation), broken)).rejects.toThrow('the connection broke')
    const again = () => own.once(mutation(key, operation), done)
    await setStart(key, 50)
    await expect(again()).rejects.toMatchObject({
      code: 'in_progress',
      message: expect.stringContaining('"conflict" if it was interrupted') as unknown,
    })
    await setStart(key, 61)
    await expect(again()).rejects.toMatchObject({
      code: 'conflict',
      message: expect.stringContaining('retry with a new Idempotency-Key') as unknown,
    })
  })

  test('gets a late response of a request that was reported as interrupted', async () => {
    const own = new Idempotency(pool, insist)
    const key = randomUUID()
    const { promise, resolve } = Promise.withResolvers<void>()
    const slow = own.once(mutation(key), async () => {
      await promise
      return done()
    })
    await until('the key is stored', () => storedRows(key), { accept: (rows) => rows.length === 1 })
    await setStart(key, 61)
    await expect(own.once(mutation(key), done)).rejects.toMatchObject({ code: 'conflict' })
    resolve()
    await slow
    expect(await own.once(mutation(key), done)).toMatchObject({ text: '{}', isReplayed: true })
  })

  test('does not write a comment twice after a crash', async () => {
    const { ids } = await fill(stage.catalog, 'orders')
    const id = ids[0] ?? ''
    const dying = await staged(pool, {
      catalog: (made) =>
        new Proxy(made, {
          get: (target, name: keyof Catalog) => {
            const one = target[name]
            if (typeof one !== 'function') return one
            if (name !== 'comment') return one.bind(target) as unknown
            return async (...parameters: Parameters<Catalog['comment']>) => {
              await target.comment(...parameters)
              throw new Error('the connection broke after it was committed')
            }
          },
        }),
    })
    const key = randomUUID()
    const comment = (on: typeof stage) =>
      on.ask('operator', `/api/v1/dead-letters/${id}/comments`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'idempotency-key': key },
        body: JSON.stringify({ text: 'payments is healthy again' }),
      })
    expect((await comment(dying)).status).toBe(500)
    await setStart(key, 61)
    const again = await comment(stage)
    expect([again.status, await codeOf(again)]).toEqual([409, 'conflict'])
    expect(await stage.catalog.comments(id)).toHaveLength(1)
  })

  test('returns the same plan after a crash', async () => {
    const { ids } = await fill(stage.catalog, 'orders')
    const key = randomUUID()
    const first = await post('/api/v1/replays', { selection: { ids } }, key)
    // Simulates a crash before the response was stored.
    await pool.query('delete from redrive_server.idempotency where key = $1', [key])
    const second = await post('/api/v1/replays', { selection: { ids } }, key)
    const [one, other] = (await Promise.all([first.json(), second.json()])) as { id: string }[]
    expect(other?.id).toBe(one?.id)
  })

  test('is a new request after a day, and the sweep deletes expired rows', async () => {
    const own = new Idempotency(pool, insist)
    const [key, other] = [randomUUID(), randomUUID()]
    await own.once(mutation(key), done)
    await own.once(mutation(other), done)
    await pool.query(
      `update redrive_server.idempotency set taken_at = now() - interval '25 hours' where key = any($1)`,
      [[key, other]],
    )
    expect(await own.once({ ...mutation(key), request: 'another' }, done)).toMatchObject({
      isReplayed: false,
    })
    await own.sweep()
    expect([(await storedRows(key)).length, (await storedRows(other)).length]).toEqual([1, 0])
  })

  test('does not depend on the number of expired rows: the sweep deletes all', async () => {
    await pool.query(
      `insert into redrive_server.idempotency (caller, key, operation, request_hash, work, taken_at)
        select 'many', n::text, 'discard', '', gen_random_uuid(), now() - interval '25 hours'
          from generate_series(1, 2500) as n`,
    )
    await new Idempotency(pool, insist).sweep()
    const { rowCount } = await pool.query(
      `select from redrive_server.idempotency where caller = 'many'`,
    )
    expect(rowCount).toBe(0)
  })
})
