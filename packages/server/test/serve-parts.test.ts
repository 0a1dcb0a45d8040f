import type { Catalog } from '@redrive/catalog'
import { fastify } from 'fastify'
import { Pool } from 'pg'
import { describe, expect, onTestFinished, test } from 'vitest'
import { type HealthParts, readinessOf } from '../src/http/health.ts'
import { createMetrics, type MetricsParts } from '../src/http/metrics.ts'
import { createLog, parseServeRoles } from '../src/index.ts'
import { cached } from '../src/cached.ts'
import { migrateServer } from '../src/migrate.ts'
import { callerOfToken } from '../src/identity/tokens.ts'
import { listen, type ListenParts } from '../src/start/listeners.ts'
import { endAll } from '../src/start/stopping.ts'
import { freePort } from './serve-stage.ts'
import { tellingTroubles } from '../src/start/troubles.ts'

/** A log, and what was written to it. */
function heard() {
  const lines: string[] = []
  const log = createLog({ to: { write: (line) => void lines.push(line) } })
  return { log, lines }
}

describe('roles', () => {
  test('are all when none is said, and else those that are said', () => {
    expect(parseServeRoles()).toEqual(['api', 'ingest', 'replay', 'watch'])
    expect(parseServeRoles(['watch, api', 'api'])).toEqual(['api', 'watch'])
  })

  test('that do not exist are refused', () => {
    expect(() => parseServeRoles(['api,cook', 'baker'])).toThrow(
      "--role: expected some of api, ingest, replay, watch, got 'cook', 'baker'.",
    )
  })
})

describe('ending', () => {
  test('goes step by step, together within a step', async () => {
    const order: string[] = []
    const one = (what: string, waitFor?: Promise<void>) => ({
      what,
      end: async () => {
        order.push(`${what} begins`)
        await waitFor
        order.push(`${what} ends`)
      },
    })
    const gate = Promise.withResolvers<void>()
    const opener = { what: 'opener', end: async () => gate.resolve() }
    const { log } = heard()
    const steps = [[one('a', gate.promise), opener], [one('b')]]
    expect(await endAll(steps, { graceMs: 10_000, log })).toEqual({ isClean: true })
    expect(order).toEqual(['a begins', 'a ends', 'b begins', 'b ends'])
  })

  test('goes on when something cannot be ended, and tells', async () => {
    const { log, lines } = heard()
    let isEnded = false
    const steps = [
      [{ what: 'the listener', end: () => Promise.reject(new Error('busy')) }],
      [{ what: 'the rest', end: async () => void (isEnded = true) }],
    ]
    expect(await endAll(steps, { graceMs: 10_000, log })).toEqual({ isClean: false })
    expect(isEnded).toBe(true)
    expect(lines.join()).toContain('Ending failed: the listener.')
  })

  test('is over when its time is over, and says what is left', async () => {
    const { log, lines } = heard()
    let isEnded = false
    const steps = [
      [{ what: 'requests', end: () => new Promise(() => undefined) }],
      [{ what: 'the database', end: async () => void (isEnded = true) }],
    ]
    expect(await endAll(steps, { graceMs: 20, log })).toEqual({ isClean: false })
    expect(isEnded).toBe(false)
    expect(lines.join()).toContain('Not ended within 20 ms: requests, the database.')
  })
})

describe('a chore that fails', () => {
  test('is in the log at once, and once while it goes on failing for the same reason', () => {
    const { log, lines } = heard()
    const tell = tellingTroubles(log)
    const silent = { chore: 'ingest', source: 'orders', error: new Error('no route') }
    for (let time = 0; time < 3; time++) tell(silent)
    tell({ ...silent, source: 'payments' })
    tell({ ...silent, error: new Error('The queue is gone.') })
    const several = new AggregateError([new Error('a'), 'b'], 'Several are in trouble.')
    tell({ chore: 'watch', source: undefined, error: several })
    const said = lines.map((line) => JSON.parse(line) as { readonly msg: string })
    expect(said).toMatchObject([
      {
        chore: 'ingest',
        source: 'orders',
        msg: 'The chore ingest of orders failed: no route. It is tried again.',
      },
      { msg: 'The chore ingest of payments failed: no route. It is tried again.' },
      { msg: 'The chore ingest of orders failed: The queue is gone. It is tried again.' },
      { msg: 'The chore watch failed: Several are in trouble. a. b. It is tried again.' },
    ])
  })
})

const well: HealthParts = {
  roles: ['api'],
  isStopping: () => false,
  database: async () => undefined,
  missing: async () => [],
  brokers: () => [],
}

describe('readiness', () => {
  test.each([
    ['while it stops', { isStopping: () => true }, { process: 'stopping' }],
    [
      'while the database does not answer',
      { database: () => Promise.reject(new Error('away')) },
      { database: 'not_answering', migrations: 'not_answering' },
    ],
    [
      'while migrations are missing',
      { missing: async () => ['0002'] },
      { migrations: 'migrations_missing' },
    ],
  ] as const)('is off %s', async (_, part, checks) => {
    const readiness = await readinessOf({ ...well, ...part })
    expect(readiness.isReady).toBe(false)
    expect(readiness.checks).toMatchObject(checks)
  })

  test('does not depend on brokers, and names none of them', async () => {
    const brokers = () => [
      { name: 'secret-project', kind: 'kafka' as const, isAnswering: false },
      { name: 'other', kind: 'kafka' as const, isAnswering: undefined },
    ]
    const readiness = await readinessOf({ ...well, brokers })
    expect(readiness.isReady).toBe(true)
    expect(readiness.brokers).toEqual({ kafka: { answering: 0, silent: 1, unknown: 1 } })
    expect(JSON.stringify(readiness)).not.toContain('secret-project')
  })
})

describe('what is remembered', () => {
  test('is asked for once by all who ask meanwhile, and again after a failure', async () => {
    let asked = 0
    const ask = cached(60_000, async () => {
      asked += 1
      if (asked === 1) throw new Error('not now')
      return asked
    })
    expect(await Promise.allSettled([ask(), ask()])).toMatchObject([
      { status: 'rejected' },
      { status: 'rejected' },
    ])
    expect(asked).toBe(1)
    expect(await Promise.all([ask(), ask()])).toEqual([2, 2])
    expect(await ask()).toBe(2)
  })
})

describe('metrics', () => {
  const counts = (sources: number): Awaited<ReturnType<Catalog['counts']>> => ({
    at: 100_000,
    groups: [],
    sources: Array.from({ length: sources }, (_, at) => ({
      source: `s${at}`,
      open: 2,
      count: 3,
      attempts: 4,
      openByClass: { transient: 2 },
      oldestAt: at === 0 ? undefined : 40_000 + at,
    })),
  })
  const none = { planned: 0, skipped: 0, queued: 0, claimed: 0, publishing: 0, published: 0 }
  const items = { ...none, resolved: 5, refailed: 1, unknown: 0, expired: 0, cancelled: 0 }
  const made = (sources: number, part: Partial<MetricsParts> = {}) =>
    createMetrics({
      catalog: {
        counts: async () => counts(sources),
        replayed: async () => counts(sources).sources.map(({ source }) => ({ source, items })),
      },
      version: '1',
      roles: ['api'],
      brokers: () => [],
      chores: () => [{ role: 'ingest', handled: 7, failed: 2 }],
      ...part,
    })

  test('say how many wait, how long, and what became of replays', async () => {
    const text = await made(2).text()
    for (const line of [
      'redrive_database_up 1',
      'redrive_dead_letters{source="s1",class="transient"} 2',
      'redrive_dead_letters{source="s1",class="business"} 0',
      'redrive_oldest_dead_letter_age_seconds{source="s0"} 0',
      'redrive_oldest_dead_letter_age_seconds{source="s1"} 59.999',
      'redrive_replay_items_total{source="s0",outcome="resolved"} 5',
      'redrive_replay_items_total{source="s0",outcome="unknown"} 0',
      'redrive_chores_total{role="ingest",outcome="failed"} 2',
    ]) {
      expect(text.split('\n')).toContain(line)
    }
  })

  test('have as many series as before when they are asked again', async () => {
    const metrics = made(3)
    const lines = async () =>
      (await metrics.text()).split('\n').filter((one) => one.startsWith('redrive_'))
    expect(await lines()).toEqual(await lines())
  })

  test('have a bound: sources beyond it are counted together', async () => {
    const text = await made(700).text()
    const series = text.split('\n').filter((one) => one.startsWith('redrive_dead_letters{'))
    expect(series).toHaveLength(501 * 5)
    expect(text).toContain('redrive_dead_letters{source="other",class="transient"} 400')
    expect(text).toContain('redrive_oldest_dead_letter_age_seconds{source="other"} 59.5')
  })

  test('say that the database is away, and keep no old numbers', async () => {
    const catalog = { counts: () => Promise.reject(new Error('away')), replayed: async () => [] }
    const text = await made(1, { catalog }).text()
    expect(text).toContain('redrive_database_up 0')
    expect(text).not.toContain('redrive_dead_letters{')
    expect(text).toContain('process_cpu_seconds_total')
  })
})

describe('metrics for a token', () => {
  /** A token that looks like one. */
  const authorization = `Bearer rdv_${'0'.repeat(32)}_${'x'.repeat(43)}`
  const metrics = {
    observe: () => undefined,
    text: async () => 'secret',
    contentType: 'text/plain',
  }

  /** What is answered where the caller is looked up like this. */
  async function asked(identify: ListenParts['identity']['identify'], app?: ListenParts['app']) {
    const { log, lines } = heard()
    const config = { listen: { host: '127.0.0.1', port: 0 }, metrics: {} } as ListenParts['config']
    const listeners = await listen({
      config,
      health: well,
      metrics,
      identity: { identify },
      log,
      app,
    })
    onTestFinished(() => listeners.close())
    const answer = await fetch(`${listeners.url}/metrics`, { headers: { authorization } })
    return { answer, text: await answer.text(), lines }
  }

  test.each([
    ['with the API', () => fastify()],
    ['without the API', () => undefined],
  ])('say that the database is away, and nothing else: %s', async (_, app) => {
    const port = await freePort()
    const pool = new Pool({ host: '127.0.0.1', port })
    onTestFinished(() => pool.end())
    const identify = () => callerOfToken(pool, authorization.slice(7), () => [])
    const { answer, text } = await asked(identify, app())
    expect(answer.status).toBe(200)
    expect(answer.headers.get('content-type')).toContain('text/plain')
    expect(text.split('\n')).toEqual([
      expect.stringMatching(/^# HELP redrive_database_up /),
      '# TYPE redrive_database_up gauge',
      'redrive_database_up 0',
      '',
    ])
  })

  test('tell nobody but the log what went wrong, where the API is not', async () => {
    const why = 'connect ECONNREFUSED 10.0.0.1:5432'
    const { answer, text, lines } = await asked(() => Promise.reject(new Error(why)))
    expect(answer.status).toBe(500)
    expect(JSON.parse(text)).toMatchObject({ code: 'internal' })
    expect(text).not.toContain('10.0.0.1')
    expect(lines.join()).toContain(why)
    expect(lines.join()).not.toContain('rdv_')
  })
})

test('a migration that is not allowed says how an administrator gets it', async () => {
  const refused = Object.assign(new Error('permission denied'), { code: '42501' })
  const pool = { connect: () => Promise.reject(refused) } as unknown as Pool
  await expect(migrateServer(pool)).rejects.toThrow('run what `redrive migrate --print-sql` prints')
})

test('a log is refused at a level that does not exist, with those that do', () => {
  expect(() => createLog({ level: 'foo' })).toThrow(
    "--log-level: expected one of trace, debug, info, warn, error, fatal, silent, got 'foo'.",
  )
  expect(createLog({ level: 'silent' }).level).toBe('silent')
})

test('a log never has what lets somebody in', () => {
  const { log, lines } = heard()
  log.info(
    { authorization: 'hunter2', headers: { cookie: 'hunter2' }, a: { b: { token: 'hunter2' } } },
    'x',
  )
  expect(lines.join()).toContain('***')
  expect(lines.join()).not.toContain('hunter2')
})
