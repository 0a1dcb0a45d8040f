import { setTimeout as after } from 'node:timers/promises'
import { promisify } from 'node:util'
import type { Output, Run } from '@redrive/api'
import type { Catalog } from '@redrive/catalog'
import { until } from '@redrive/testing'
import { describe, expect, test } from 'vitest'
import { watch } from '../src/operations/stream-run.ts'
import { eventsOf } from '../src/http/streams.ts'
import type { Caller } from '../src/access/caller.ts'
import { database, fill, PEOPLE, staged } from './http-stage.ts'

const pool = await database('redrive_server_streams')
const stage = await staged(pool)

async function planned() {
  const { ids } = await fill(stage.catalog, 'orders', 3)
  return stage.catalog.replays.plan({ selection: { ids }, by: 'planner' })
}

/** Watches a run in the background and collects its states. */
function watching(id: string, who = 'viewer', on = stage) {
  const stop = new AbortController()
  const seen: Run[] = []
  const ended = (async () => {
    const runs = on.as(who).stream('watchReplay', { params: { id } }, { signal: stop.signal })
    for await (const run of runs) seen.push(run)
  })()
  // Avoids an unhandled rejection in tests that do not await the end.
  ended.catch(() => undefined)
  return { seen, ended, stop: () => stop.abort() }
}

const states = (seen: readonly Run[]) => seen.map(({ state }) => state)

describe('watchReplay', () => {
  test('sends every change once and ends with the run', async () => {
    const { id, hash } = await planned()
    const { seen, ended } = watching(id)
    await until('the first state', () => states(seen), { accept: (all) => all.length === 1 })
    await stage.catalog.replays.approve(id, { hash, by: 'another' })
    await until('the state running', () => states(seen), {
      accept: (all) => all.at(-1) === 'running',
    })
    await stage.catalog.replays.pause(id, { by: 'planner' })
    await until('the state paused', () => states(seen), {
      accept: (all) => all.at(-1) === 'paused',
    })
    await stage.catalog.replays.cancel(id, { by: 'planner' })
    await ended
    expect(states(seen)).toEqual(['planned', 'running', 'paused', 'cancelled'])
    expect(seen.at(-1)?.counts.cancelled).toBe(3)
  })

  test.each([
    ['has lost the permission', []],
    ['has fewer permissions', [{ actions: ['view' as const], sources: ['orders.eu'] }]],
    ['is signed out', undefined],
  ])('ends within 10 s when the caller %s', async (_, grants) => {
    const people: Record<string, Caller> = { ...PEOPLE }
    const other = await staged(pool, { people })
    const { id } = await planned()
    const { seen, ended } = watching(id, 'viewer', other)
    await until('the first state', () => seen.length === 1)
    const began = performance.now()
    const viewer = people['viewer'] as Caller
    if (grants === undefined) delete people['viewer']
    else people['viewer'] = { ...viewer, grants }
    await ended
    expect(performance.now() - began).toBeLessThan(10_000)
    expect(states(seen)).toEqual(['planned'])
  })

  test('sends nothing while nothing changes', async () => {
    const { id } = await planned()
    const run = await stage.as('viewer').call('getReplay', { params: { id } })
    const next = [run, run, { ...run, state: 'done' as const }]
    const read = async () => next.shift() ?? run
    const seen: Run[] = []
    for await (const one of watch(run, read, new AbortController().signal)) seen.push(one)
    expect(states(seen)).toEqual(['planned', 'done'])
    expect(next).toEqual([])
  })

  test('is an event stream that proxies do not buffer', async () => {
    const { id } = await planned()
    await stage.catalog.replays.cancel(id, { by: 'planner' })
    const answer = await stage.ask('viewer', `/api/v1/replays/${id}/events`)
    expect(answer.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
    expect(answer.headers.get('x-accel-buffering')).toBe('no')
    expect(await answer.text()).toMatch(/^data: \{.*"state":"cancelled".*\}\n\n$/)
  })

  test('is rejected above the limit, and possible again after a stream is closed', async () => {
    const { id } = await planned()
    const all = Array.from({ length: 8 }, () => watching(id, 'operator'))
    await until('eight streams', () => all.filter(({ seen }) => seen.length === 1).length, {
      accept: (count) => count === 8,
    })
    const ninth = await stage.ask('operator', `/api/v1/replays/${id}/events`)
    expect(ninth.status).toBe(429)
    expect(ninth.headers.get('retry-after')).toBe('10')
    const other = watching(id, 'viewer')
    await until('a stream of another user', () => other.seen.length, {
      accept: (count) => count === 1,
    })
    other.stop()
    all[0]?.stop()
    await until(
      'a free slot',
      async () => {
        const again = watching(id, 'operator')
        await Promise.race([
          again.ended.catch(() => undefined),
          until('the first event', () => again.seen.length, { accept: (count) => count > 0 }),
        ])
        again.stop()
        return again.seen.length
      },
      { accept: (count) => count === 1 },
    )
    for (const { stop } of all) stop()
  })

  test('releases the slot after an error', async () => {
    for (let count = 0; count < 20; count += 1) {
      const missing = '00000000-0000-0000-0000-000000000000'
      const answer = await stage.ask('approver', `/api/v1/replays/${missing}/events`)
      expect(answer.status).toBe(404)
    }
  })

  test('reserves no slot when the client disconnects during authentication', async () => {
    const gate = Promise.withResolvers<void>()
    let entered = 0
    const own = await staged(pool, {
      desk: (made) => ({
        ...made,
        async enter(...parameters) {
          entered += 1
          await gate.promise
          return made.enter(...parameters)
        },
      }),
    })
    const { id } = await planned()
    const gone = Array.from({ length: 8 }, () => watching(id, 'viewer', own))
    await until('eight requests', () => entered, { accept: (count) => count === 8 })
    for (const { stop } of gone) stop()
    const connections = promisify(own.app.server.getConnections.bind(own.app.server))
    await until('no connection', connections, { accept: (count) => count === 0 })
    gate.resolve()
    const { seen, stop } = watching(id, 'viewer', own)
    expect(
      await until('the first state', () => states(seen), { accept: (all) => all.length > 0 }),
    ).toEqual(['planned'])
    stop()
  })

  test('ends when the server stops', async () => {
    const own = await staged(pool)
    const { id } = await planned()
    const { seen, ended } = watching(id, 'viewer', own)
    await until('the first event', () => seen.length, { accept: (count) => count === 1 })
    const begun = Date.now()
    await own.app.close()
    await ended
    expect(Date.now() - begun).toBeLessThan(3_000)
  })
})

describe('events', () => {
  test('contain a comment while there is no value, and end their source', async () => {
    let isEnded = false
    async function* slow() {
      try {
        yield 1
        await after(120)
        yield 2
        await after(10_000)
      } finally {
        isEnded = true
      }
    }
    const sent: string[] = []
    for await (const text of eventsOf(slow(), 50)) {
      sent.push(text)
      if (text.includes('2')) break
    }
    expect(sent[0]).toBe('data: 1\n\n')
    expect(sent).toContain(': beat\n\n')
    expect(sent.at(-1)).toBe('data: 2\n\n')
    expect(isEnded).toBe(true)
  })
})

describe('an export', () => {
  test('contains all matching dead letters, one per line, and is audited', async () => {
    const { group } = await fill(stage.catalog, 'orders', 450)
    const answer = await stage.ask('admin', `/api/v1/dead-letters/export?filter=group:${group}`)
    expect(answer.headers.get('content-type')).toBe('application/jsonl; charset=utf-8')
    const lines = (await answer.text()).trimEnd().split('\n')
    const ids = lines.map((line) => (JSON.parse(line) as Output<'exportDeadLetters'>).id)
    expect(new Set(ids).size).toBe(450)
    const { entries } = await stage.audit.read({ operation: 'exportDeadLetters', limit: 1 })
    expect(entries).toMatchObject([
      { person: 'admin', outcome: 'viewed', facts: { filter: `group:${group}` } },
    ])
  })

  /** Starts a server with a catalog that always has another page. */
  async function endless(message: string) {
    let pages = 0
    await fill(stage.catalog, 'orders')
    const [one] = (await stage.catalog.deadLetters({ after: 0, limit: 1 })).deadLetters
    const deadLetters = Array.from({ length: 200 }, () => ({ ...one, message }))
    const deadLettersOf = async () => {
      pages += 1
      return { deadLetters, nextCursor: 'more' }
    }
    const unlike = (made: Catalog) =>
      new Proxy(made, {
        get: (target, name) =>
          name === 'deadLetters' ? deadLettersOf : (Reflect.get(target, name, target) as unknown),
      })
    return { on: await staged(pool, { catalog: unlike }), pages: () => pages }
  }
  const everything = '/api/v1/dead-letters/export?filter=after:0'

  test('reads pages only as fast as the client, and stops when the client disconnects', async () => {
    const { on, pages } = await endless('x'.repeat(50_000))
    const answer = await on.ask('admin', everything)
    const reader = answer.body?.getReader()
    await reader?.read()
    // The server fills the buffers and then waits.
    let before = -1
    const isStill = async () => {
      const was = before
      before = pages()
      await after(200)
      return was === before && before === pages()
    }
    await until('the export stalls', isStill)
    expect(pages()).toBeLessThan(10)
    await reader?.cancel()
    await until('the export stalls', isStill)
    expect(pages()).toBeLessThan(10)
  })

  test('ends with an error when the server stops', async () => {
    const { on, pages } = await endless('x'.repeat(50_000))
    const answer = await on.ask('admin', everything)
    const closing = on.app.close()
    await expect(answer.text()).rejects.toThrow('terminated')
    await closing
    expect(pages()).toBeLessThan(500)
  })

  test('without a reading client does not block the shutdown', async () => {
    const { on, pages } = await endless('x'.repeat(50_000))
    const answer = await on.ask('admin', everything)
    const reader = answer.body?.getReader()
    await reader?.read()
    await until('the first page', () => pages(), { accept: (count) => count > 0 })
    const begun = Date.now()
    await on.app.close()
    expect(Date.now() - begun).toBeLessThan(5_000)
    await expect(
      (async () => {
        while ((await reader?.read())?.done === false);
      })(),
    ).rejects.toThrow('terminated')
  })

  test('ends with an error when it is too large', async () => {
    const { on, pages } = await endless('short')
    const answer = await on.ask('admin', everything)
    await expect(answer.text()).rejects.toThrow('terminated')
    expect(pages()).toBe(500)
  })
})
