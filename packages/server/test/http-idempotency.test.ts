import { randomUUID } from 'node:crypto'
import { isMutation, type Operation, type Route, ROUTES } from '@redrive/api'
import type { Catalog } from '@redrive/catalog'
import { until } from '@redrive/testing'
import type { Pool } from 'pg'
import { describe, expect, test } from 'vitest'
import { Refusal } from '../src/access/refusal.ts'
import { Idempotency } from '../src/http/idempotency.ts'
import { insisting } from '../src/insist.ts'
import { database, fill, PEOPLE, staged } from './http-stage.ts'

const pool = await database('redrive_server_idempotency')
const stage = await staged(pool)

async function post(path: string, body: unknown, key: string | undefined, who = 'operator') {
  const headers: Record<string, string> = { 'content-type': 'application/json' }
  if (key !== undefined) headers['idempotency-key'] = key
  return stage.ask(who, path, { method: 'POST', headers, body: JSON.stringify(body) })
}

const codeOf = async (answer: Response) => ((await answer.json()) as { code: string }).code
const kept = async (key: string) =>
  (await pool.query<object>('select * from redrive_server.idempotency where key = $1', [key])).rows

describe('a mutation', () => {
  test('without a key is refused, and says what to do', async () => {
    const { ids } = await fill(stage.catalog, 'orders')
    const answer = await post('/api/v1/dead-letters/discard', { ids }, undefined)
    expect(answer.status).toBe(400)
    expect(await codeOf(answer)).toBe('idempotency_key_missing')
    const odd = await post('/api/v1/dead-letters/discard', { ids }, 'a b')
    expect([odd.status, await codeOf(odd)]).toEqual([400, 'invalid'])
  })

  test('that is asked again is answered as before, and is not done again', async () => {
    const { ids } = await fill(stage.catalog, 'orders', 2)
    const key = randomUUID()
    const first = await post('/api/v1/dead-letters/discard', { ids }, key)
    expect(first.headers.get('idempotency-replayed')).toBeNull()
    const said = await first.text()
    expect(JSON.parse(said)).toEqual({ changed: 2, skipped: [] })
    await stage.catalog.restore({ ids }, { by: 'someone' })
    const second = await post('/api/v1/dead-letters/discard', { ids }, key)
    expect(second.headers.get('idempotency-replayed')).toBe('true')
    expect([second.status, await second.text()]).toEqual([200, said])
    expect((await stage.catalog.deadLetter(ids[0] ?? ''))?.status).toBe('open')
  })

  test('has the status and the ETag of the first answer again', async () => {
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

  test('with the key of another request is refused', async () => {
    const { ids, group } = await fill(stage.catalog, 'orders')
    const key = randomUUID()
    await post('/api/v1/dead-letters/discard', { ids }, key)
    const other = await post('/api/v1/dead-letters/discard', { group }, key)
    expect([other.status, await codeOf(other)]).toEqual([422, 'idempotency_key_reused'])
    const elsewhere = await post('/api/v1/dead-letters/restore', { ids }, key)
    expect(elsewhere.status).toBe(422)
    // A key is its caller's: somebody else may happen to have the same.
    const { ids: others } = await fill(stage.catalog, 'orders')
    const theirs = await post('/api/v1/dead-letters/discard', { ids: others }, key, 'admin')
    expect(theirs.status).toBe(200)
  })

  test('of one person is not answered to their other credential', async () => {
    const { ids } = await fill(stage.catalog, 'orders', 2)
    const key = randomUUID()
    await post('/api/v1/dead-letters/discard', { ids }, key, 'agent')
    const owner = await post('/api/v1/dead-letters/discard', { ids }, key, 'owner')
    expect(owner.headers.get('idempotency-replayed')).toBeNull()
    expect(await owner.json()).toMatchObject({ changed: 0 })
  })

  test('that was refused may be asked again with the same key', async () => {
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

  test('whose answer has a secret keeps none, and says so when it is asked again', async () => {
    const key = randomUUID()
    const token = { name: 't', actions: ['view'], sources: ['orders'], days: 1 }
    const first = await post('/api/v1/tokens', token, key)
    const { secret } = (await first.json()) as { secret: string }
    expect(first.status).toBe(201)
    expect(JSON.stringify(await kept(key))).not.toContain(secret.slice(4))
    const second = await post('/api/v1/tokens', token, key)
    expect([second.status, await codeOf(second)]).toEqual([409, 'conflict'])
    expect((await stage.as('operator').call('listTokens', {})).tokens).toHaveLength(1)
  })
})

const told: string[] = []
const insist = insisting({ error: (_, text) => void told.push(text) })
const asked = (key: string, operation: Operation = 'discard') =>
  ({ caller: PEOPLE['operator'], key, operation, request: { ids: [] } }) as Parameters<
    Idempotency['once']
  >[0]
/** As if it had been begun so many seconds ago. */
const begun = (key: string, secondsAgo: number) =>
  pool.query(
    `update redrive_server.idempotency set taken_at = now() - $2 * interval '1 second' where key = $1`,
    [key, secondsAgo],
  )
const done = async () => ({ status: 200, text: '{}', etag: undefined })

describe('an end', () => {
  /** The same database, which once does not take what begins like this. */
  function failingOnce(start: string): Idempotency {
    let isAway = true
    const query = (text: string, values: unknown[]) => {
      if (!isAway || !text.trimStart().startsWith(start)) return pool.query(text, values)
      isAway = false
      return Promise.reject(new Error('the connection broke'))
    }
    return new Idempotency({ query } as unknown as Pool, insist)
  }

  test('that cannot be kept is answered, and kept when that is possible again', async () => {
    const own = failingOnce('update')
    const key = randomUUID()
    expect(await own.once(asked(key), done)).toMatchObject({ text: '{}', isReplayed: false })
    expect(told.at(-1)).toBe('Not written, and tried again: how discard ended, for its key.')
    await until('the response is stored', () => kept(key), {
      accept: ([row]) => (row as { status: number | null }).status === 200,
    })
    expect(await own.once(asked(key), done)).toMatchObject({ text: '{}', isReplayed: true })
  })

  test('that is a refusal is told, although its key cannot be left', async () => {
    const own = failingOnce('delete')
    const key = randomUUID()
    const refuse = () => Promise.reject(new Refusal('conflict', 'not now'))
    await expect(own.once(asked(key), refuse)).rejects.toThrow('not now')
    await until('the key is deleted', () => kept(key), { accept: (rows) => rows.length === 0 })
  })

  test('that nobody knows is not the moment to do it again', async () => {
    const own = new Idempotency(pool, insist)
    const key = randomUUID()
    const broken = () => Promise.reject(new Error('the connection broke while it was committed'))
    await expect(own.once(asked(key), broken)).rejects.toThrow('the connection broke')
    await expect(own.once(asked(key), done)).rejects.toMatchObject({ code: 'in_progress' })
  })
})

describe('two at once', () => {
  test('one works, and the other is told to wait', async () => {
    const own = new Idempotency(pool, insist)
    const key = randomUUID()
    const { promise, resolve } = Promise.withResolvers<void>()
    let calls = 0
    const work = async () => {
      calls += 1
      await promise
      return done()
    }
    const both = [own.once(asked(key), work), own.once(asked(key), work)]
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

  /** Safe to do again, whatever happened in between. */
  const AGAIN: readonly Operation[] = ['planReplay', 'approveReplay', 'cancelReplay', 'revokeToken']
  const others = (Object.entries(ROUTES) as [Operation, Route][])
    .filter(([name, route]) => isMutation(route) && !AGAIN.includes(name))
    .map(([name]) => name)

  test.each(AGAIN)(
    'after a minute %s of one that died is taken over, and its late answer is not kept',
    async (operation) => {
      const own = new Idempotency(pool, insist)
      const key = randomUUID()
      const { promise, resolve } = Promise.withResolvers<void>()
      const slow = own.once(asked(key, operation), async () => {
        await promise
        return { ...(await done()), text: '"late"' }
      })
      await until('the key is stored', () => kept(key), { accept: (rows) => rows.length === 1 })
      const again = () => own.once(asked(key, operation), done)
      await begun(key, 59)
      await expect(again()).rejects.toMatchObject({
        code: 'in_progress',
        message: expect.stringContaining('it is worked on anew') as unknown,
      })
      await begun(key, 61)
      expect(await again()).toMatchObject({ text: '{}', isReplayed: false })
      resolve()
      await slow
      expect(await again()).toMatchObject({ text: '{}', isReplayed: true })
    },
  )

  test.each(others)('%s that broke off is never done again by itself', async (operation) => {
    const own = new Idempotency(pool, insist)
    const key = randomUUID()
    const broken = () => Promise.reject(new Error('the connection broke'))
    await expect(own.once(asked(key, operation), broken)).rejects.toThrow('the connection broke')
    const again = () => own.once(asked(key, operation), done)
    await begun(key, 59)
    await expect(again()).rejects.toMatchObject({
      code: 'in_progress',
      message: expect.stringContaining('you are told when it broke off') as unknown,
    })
    await begun(key, 61)
    await expect(again()).rejects.toMatchObject({
      code: 'conflict',
      message: expect.stringContaining('ask with a new Idempotency-Key') as unknown,
    })
  })

  test('a late answer is kept, also after it was taken for broken off', async () => {
    const own = new Idempotency(pool, insist)
    const key = randomUUID()
    const { promise, resolve } = Promise.withResolvers<void>()
    const slow = own.once(asked(key), async () => {
      await promise
      return done()
    })
    await until('the key is stored', () => kept(key), { accept: (rows) => rows.length === 1 })
    await begun(key, 61)
    await expect(own.once(asked(key), done)).rejects.toMatchObject({ code: 'conflict' })
    resolve()
    await slow
    expect(await own.once(asked(key), done)).toMatchObject({ text: '{}', isReplayed: true })
  })

  test('a comment that was written by one that died is not written twice', async () => {
    const { ids } = await fill(stage.catalog, 'orders')
    const id = ids[0] ?? ''
    const dying = await staged(pool, {
      catalog: (made) =>
        new Proxy(made, {
          get: (target, name: keyof Catalog) => {
            const one = target[name]
            if (typeof one !== 'function') return one
            if (name !== 'comment') return one.bind(target) as unknown
            return async (...said: Parameters<Catalog['comment']>) => {
              await target.comment(...said)
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
        body: JSON.stringify({ text: 'payments is well again' }),
      })
    expect((await comment(dying)).status).toBe(500)
    await begun(key, 61)
    const again = await comment(stage)
    expect([again.status, await codeOf(again)]).toEqual([409, 'conflict'])
    expect(await stage.catalog.comments(id)).toHaveLength(1)
  })

  test('a plan that was made by one that died is the same plan', async () => {
    const { ids } = await fill(stage.catalog, 'orders')
    const key = randomUUID()
    const first = await post('/api/v1/replays', { selection: { ids } }, key)
    // As if the process had died before it could keep its answer.
    await pool.query('delete from redrive_server.idempotency where key = $1', [key])
    const second = await post('/api/v1/replays', { selection: { ids } }, key)
    const [one, other] = (await Promise.all([first.json(), second.json()])) as { id: string }[]
    expect(other?.id).toBe(one?.id)
  })

  test('after a day it is another request, and old ones are swept away', async () => {
    const own = new Idempotency(pool, insist)
    const [key, other] = [randomUUID(), randomUUID()]
    await own.once(asked(key), done)
    await own.once(asked(other), done)
    await pool.query(
      `update redrive_server.idempotency set taken_at = now() - interval '25 hours' where key = any($1)`,
      [[key, other]],
    )
    expect(await own.once({ ...asked(key), request: 'another' }, done)).toMatchObject({
      isReplayed: false,
    })
    await own.sweep()
    expect([(await kept(key)).length, (await kept(other)).length]).toEqual([1, 0])
  })

  test('all that are old are swept away, however many there are', async () => {
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
