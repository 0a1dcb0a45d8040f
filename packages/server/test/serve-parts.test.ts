import { ALERT_LIMITS, type Catalog } from '@redrive/catalog'
import { freePort } from '@redrive/dev-support'
import { type FastifyBaseLogger, fastify } from 'fastify'
import { Pool } from 'pg'
import { describe, expect, onTestFinished, test } from 'vitest'
import { type HealthDeps, readinessOf } from '../src/http/health.ts'
import { createMetrics, type MetricsDeps } from '../src/http/metrics.ts'
import { createLog } from '../src/index.ts'
import { readConfig } from '../src/config/load.ts'
import { warnOfDevelopment } from '../src/start/components.ts'
import { parseServeRoles } from '../src/serve-role.ts'
import { cached } from '../src/cached.ts'
import { migrateServer } from '../src/migrate.ts'
import { callerOfToken } from '../src/identity/tokens.ts'
import { listen, type ListenerDeps } from '../src/start/listeners.ts'
import { endAll } from '../src/start/shutdown.ts'
import { logJobFailures } from '../src/start/log-job-failures.ts'

/** Creates a log that collects its lines. */
function recordingLog() {
  const lines: string[] = []
  const log = createLog({ to: { write: (line) => void lines.push(line) } })
  return { log, lines }
}

describe('roles', () => {
  test('default to all, and are otherwise the listed ones', () => {
    expect(parseServeRoles()).toEqual(['api', 'ingest', 'replay', 'watch'])
    expect(parseServeRoles(['watch, api', 'api'])).toEqual(['api', 'watch'])
  })

  test('are rejected when they do not exist', () => {
    expect(() => parseServeRoles(['api,cook', 'baker'])).toThrow(
      "--role: expected one or more of api, ingest, replay, watch, got 'cook', 'baker'.",
    )
  })
})

describe('the shutdown', () => {
  test('runs the steps in order and the tasks of one step concurrently', async () => {
    const order: string[] = []
    const task = (what: string, waitFor?: Promise<void>) => ({
      what,
      end: async () => {
        order.push(`${what} begins`)
        await waitFor
        order.push(`${what} ends`)
      },
    })
    const gate = Promise.withResolvers<void>()
    const opener = { what: 'opener', end: async () => gate.resolve() }
    const { log } = recordingLog()
    const steps = [[task('a', gate.promise), opener], [task('b')]]
    expect(await endAll(steps, { graceMs: 10_000, log })).toEqual({ isClean: true })
    expect(order).toEqual(['a begins', 'a ends', 'b begins', 'b ends'])
  })

  test('continues after a failed task and logs the failure', async () => {
    const { log, lines } = recordingLog()
    let isEnded = false
    const steps = [
      [{ what: 'the listener', end: () => Promise.reject(new Error('busy')) }],
      [{ what: 'the rest', end: async () => void (isEnded = true) }],
    ]
    expect(await endAll(steps, { graceMs: 10_000, log })).toEqual({ isClean: false })
    expect(isEnded).toBe(true)
    expect(lines.join()).toContain('Shutdown failed for: the listener.')
  })

  test('ends after the grace period and logs the open tasks', async () => {
    const { log, lines } = recordingLog()
    let isEnded = false
    const steps = [
      [{ what: 'requests', end: () => new Promise(() => undefined) }],
      [{ what: 'the database', end: async () => void (isEnded = true) }],
    ]
    expect(await endAll(steps, { graceMs: 20, log })).toEqual({ isClean: false })
    expect(isEnded).toBe(false)
    expect(lines.join()).toContain('Shutdown did not finish within 20 ms: requests, the database.')
  })
})

describe('a failed background job', () => {
  test('is logged immediately, and not again for the same reason', () => {
    const { log, lines } = recordingLog()
    const logFailure = logJobFailures(log)
    const failure = { job: 'ingest', source: 'orders', error: new Error('no route') }
    for (let time = 0; time < 3; time++) logFailure(failure)
    logFailure({ ...failure, source: 'payments' })
    logFailure({ ...failure, error: new Error('The queue is gone.') })
    const several = new AggregateError([new Error('a'), 'b'], 'Several tasks failed.')
    logFailure({ job: 'watch', source: undefined, error: several })
    const logged = lines.map((line) => JSON.parse(line) as { readonly msg: string })
    expect(logged).toMatchObject([
      {
        job: 'ingest',
        source: 'orders',
        msg: 'Background job "ingest" of source "orders" failed: no route. It will be retried.',
      },
      { msg: 'Background job "ingest" of source "payments" failed: no route. It will be retried.' },
      {
        msg: 'Background job "ingest" of source "orders" failed: The queue is gone. It will be retried.',
      },
      { msg: 'Background job "watch" failed: Several tasks failed. a. b. It will be retried.' },
    ])
  })
})

const healthy: HealthDeps = {
  roles: ['api'],
  isStopping: () => false,
  database: async () => undefined,
  missing: async () => [],
  brokers: () => [],
}

describe('readiness', () => {
  test.each([
    ['while the server stops', { isStopping: () => true }, { process: 'stopping' }],
    [
      'while the database is not reachable',
      { database: () => Promise.reject(new Error('away')) },
      { database: 'not_answering', migrations: 'not_answering' },
    ],
    [
      'while migrations are missing',
      { missing: async () => ['0002'] },
      { migrations: 'migrations_missing' },
    ],
  ] as const)('is false %s', async (_, part, checks) => {
    const readiness = await readinessOf({ ...healthy, ...part })
    expect(readiness.isReady).toBe(false)
    expect(readiness.checks).toMatchObject(checks)
  })

  test('does not depend on brokers and does not contain their names', async () => {
    const unknown = { kind: 'kafka' as const, missing: [], depth: undefined, lag: undefined }
    const brokers = () => [
      { ...unknown, name: 'secret-project', isAnswering: false },
      { ...unknown, name: 'other', isAnswering: undefined },
    ]
    const readiness = await readinessOf({ ...healthy, brokers })
    expect(readiness.isReady).toBe(true)
    expect(readiness.brokers).toEqual({ kafka: { answering: 0, silent: 1, unknown: 1 } })
    expect(JSON.stringify(readiness)).not.toContain('secret-project')
  })
})

describe('a cached result', () => {
  test('is loaded once for concurrent callers, and again after a failure', async () => {
    let loads = 0
    const load = cached(60_000, async () => {
      loads += 1
      if (loads === 1) throw new Error('not now')
      return loads
    })
    expect(await Promise.allSettled([load(), load()])).toMatchObject([
      { status: 'rejected' },
      { status: 'rejected' },
    ])
    expect(loads).toBe(1)
    expect(await Promise.all([load(), load()])).toEqual([2, 2])
    expect(await load()).toBe(2)
  })
})

describe('metrics', () => {
  const counts = (sources: number): Awaited<ReturnType<Catalog['counts']>> => ({
    at: 100_000,
    groups: [],
    sources: Array.from({ length: sources }, (_, at) => ({
      source: `s${at}`,
      open: 2,
      replaying: 3,
      undecided: 1,
      count: 3,
      attempts: 4,
      openByClass: { transient: 2 },
      oldestAt: at === 0 ? undefined : 40_000 + at,
      expiring: at,
      nextExpiryAt: undefined,
      lastIngestedAt: 90_000,
      setAside: at,
      mismatches: 4,
      mismatchedAt: undefined,
    })),
  })
  const none = { planned: 0, skipped: 0, queued: 0, claimed: 0, publishing: 0, published: 0 }
  const items = {
    ...none,
    resolved: 5,
    failed_again: 1,
    unknown: 0,
    not_returned: 0,
    expired: 0,
    cancelled: 0,
  }
  const metricsWith = (sources: number, part: Partial<MetricsDeps> = {}) =>
    createMetrics({
      catalog: {
        counts: async () => counts(sources),
        replayStats: async () => counts(sources).sources.map(({ source }) => ({ source, items })),
      },
      version: '1',
      roles: ['api'],
      brokers: () => [],
      chores: () => [{ role: 'ingest', handled: 7, failed: 2 }],
      ...part,
    })

  test('contain open counts, oldest ages and replay outcomes', async () => {
    const text = await metricsWith(2).text()
    for (const line of [
      'redrive_database_up 1',
      'redrive_dead_letters{source="s1",class="transient"} 2',
      'redrive_dead_letters{source="s1",class="business"} 0',
      'redrive_replaying_dead_letters{source="s0"} 3',
      'redrive_undecided_dead_letters{source="s0"} 1',
      'redrive_oldest_dead_letter_age_seconds{source="s0"} 0',
      'redrive_oldest_dead_letter_age_seconds{source="s1"} 59.999',
      'redrive_dead_letters_expiring{source="s1"} 1',
      'redrive_set_aside_messages{source="s0"} 0',
      'redrive_set_aside_messages{source="s1"} 1',
      'redrive_replay_mismatches_total{source="s1"} 4',
      'redrive_replay_items_total{source="s0",outcome="resolved"} 5',
      'redrive_replay_items_total{source="s0",outcome="unknown"} 0',
      'redrive_background_jobs_total{role="ingest",outcome="failed"} 2',
    ]) {
      expect(text.split('\n')).toContain(line)
    }
  })

  test('contain new and regressed groups of each source, without muted and old ones', async () => {
    const at = 10_000_000
    const group = (source: string, createdAgo: number, isMuted = false) => ({
      ...{ id: 'g', source, title: 't', open: 1, isMuted },
      createdAt: at - createdAgo,
      regressedAt: undefined,
    })
    const groups = [
      group('s0', 599_999),
      group('s0', 0),
      group('s0', 0, true),
      group('s1', 600_000),
      { ...group('s1', 600_000), regressedAt: at - 1 },
    ]
    const catalog = {
      counts: async () => ({ ...counts(2), at, groups }),
      replayStats: async () => [],
    }
    const lines = (await metricsWith(2, { catalog }).text()).split('\n')
    expect(lines.filter((line) => /^redrive_(new|regressed)_groups/.test(line))).toEqual([
      'redrive_new_groups{source="s0"} 2',
      'redrive_new_groups{source="s1"} 0',
      'redrive_regressed_groups{source="s0"} 0',
      'redrive_regressed_groups{source="s1"} 1',
    ])
  })

  test('contain the thresholds of each source', async () => {
    const alertLimits = { ...ALERT_LIMITS, depth: 50, sources: { s1: { ageMs: 60_000 } } }
    const lines = (await metricsWith(2, { alertLimits }).text()).split('\n')
    expect(lines.filter((line) => /^redrive_[a-z_]*threshold/.test(line))).toEqual([
      'redrive_dead_letters_threshold{source="s0"} 50',
      'redrive_dead_letters_threshold{source="s1"} 50',
      'redrive_oldest_dead_letter_age_threshold_seconds{source="s0"} 1800',
      'redrive_oldest_dead_letter_age_threshold_seconds{source="s1"} 60',
    ])
  })

  test('contain the state of each source at its broker, as far as it is known', async () => {
    const up = { kind: 'rabbitmq' as const, isAnswering: true, depth: 7, lag: 2, missing: ['q'] }
    const down = { ...up, isAnswering: false, depth: undefined, lag: undefined, missing: [] }
    const brokers = () => [
      { ...up, name: 'a' },
      { ...down, name: 'b' },
    ]
    const lines = (await metricsWith(1, { brokers }).text()).split('\n')
    expect(lines).toContain('redrive_broker_dead_letters{source="a"} 7')
    expect(lines).toContain('redrive_broker_lag{source="a"} 2')
    expect(lines).toContain('redrive_broker_missing_queues{source="a"} 1')
    expect(lines).toContain('redrive_broker_up{source="b",broker="rabbitmq"} 0')
    expect(lines).toContain('redrive_last_ingest_timestamp_seconds{source="s0"} 90')
    expect(lines.filter((one) => one.startsWith('redrive_broker_lag{source="b"'))).toEqual([])
  })

  test('contain the same series in every response', async () => {
    const metrics = metricsWith(3)
    const lines = async () =>
      (await metrics.text()).split('\n').filter((one) => one.startsWith('redrive_'))
    expect(await lines()).toEqual(await lines())
  })

  test('count sources above the limit together', async () => {
    const text = await metricsWith(700).text()
    const series = text.split('\n').filter((one) => one.startsWith('redrive_dead_letters{'))
    expect(series).toHaveLength(501 * 5)
    expect(text).toContain('redrive_dead_letters{source="other",class="transient"} 400')
    expect(text).toContain('redrive_oldest_dead_letter_age_seconds{source="other"} 59.5')
  })

  test('report an unreachable database and no old numbers', async () => {
    const catalog = { counts: () => Promise.reject(new Error('away')), replayStats: async () => [] }
    const text = await metricsWith(1, { catalog }).text()
    expect(text).toContain('redrive_database_up 0')
    expect(text).not.toContain('redrive_dead_letters{')
    expect(text).toContain('process_cpu_seconds_total')
  })
})

describe('development mode', () => {
  const warnings = (auth: object) => {
    const { log, lines } = recordingLog()
    const raw = { database: { url: 'postgres://localhost/db' }, sources: {}, ...auth }
    warnOfDevelopment(readConfig(raw, { env: {}, cwd: '.', from: 'test' }), log)
    return lines.map((line) => JSON.parse(line) as { level: number; msg: string })
  }

  test('is a warning in the log, with the address and the roles', () => {
    const [warning, ...others] = warnings({ auth: { development: { roles: ['viewer'] } } })
    expect(others).toEqual([])
    expect(warning).toMatchObject({ level: 40 })
    expect(warning?.msg).toContain(
      'auth.development is set: every client that can connect to 127.0.0.1:8080 has the role viewer on all sources, without a login.',
    )
    const oidc = { issuer: 'https://id.example', clientId: 'redrive' }
    expect(warnings({ auth: { oidc }, publicUrl: 'https://redrive.example' })).toEqual([])
  })
})

describe('metrics for a token', () => {
  /** A token with a valid format. */
  const authorization = `Bearer rdv_${'0'.repeat(32)}_${'x'.repeat(43)}`
  const refused: string[] = []
  const metrics = {
    observe: () => undefined,
    refusedCredential: (kind: string) => void refused.push(kind),
    text: async () => 'secret',
    contentType: 'text/plain',
  }

  /** Requests the metrics from a server that identifies callers with this function. */
  async function requestMetrics(
    identify: ListenerDeps['identity']['identify'],
    appWith: (log: FastifyBaseLogger) => ListenerDeps['app'] = () => undefined,
  ) {
    const { log, lines } = recordingLog()
    const config = { listen: { host: '127.0.0.1', port: 0 }, metrics: {} } as ListenerDeps['config']
    const listeners = await listen({
      config,
      health: healthy,
      metrics,
      identity: { identify },
      log,
      app: appWith(log),
    })
    onTestFinished(() => listeners.close())
    const response = await fetch(`${listeners.url}/metrics`, { headers: { authorization } })
    return { response, text: await response.text(), lines }
  }

  test.each([
    ['with the API', () => fastify()],
    ['without the API', () => undefined],
  ])('report only an unreachable database: %s', async (_, app) => {
    const port = await freePort()
    const pool = new Pool({ host: '127.0.0.1', port })
    onTestFinished(() => pool.end())
    const identify = () => callerOfToken(pool, authorization.slice(7), () => [])
    const { response, text } = await requestMetrics(identify, app)
    expect(response.status).toBe(200)
    expect(response.headers.get('content-type')).toContain('text/plain')
    expect(text.split('\n')).toEqual([
      expect.stringMatching(/^# HELP redrive_database_up /),
      '# TYPE redrive_database_up gauge',
      'redrive_database_up 0',
      '',
    ])
  })

  test.each([
    ['with the API', (log: FastifyBaseLogger) => fastify({ loggerInstance: log })],
    ['without the API', () => undefined],
  ])('count an invalid token and log its address: %s', async (_, app) => {
    refused.length = 0
    const { response, lines } = await requestMetrics(async () => undefined, app)
    expect(response.status).toBe(401)
    expect(refused).toEqual(['token'])
    expect(lines.join()).toMatch(/"address":"127\.0\.0\.1".*Refused an invalid credential/)
    expect(lines.join()).not.toContain('rdv_')
  })

  test('write an internal error to the log and not to the response, without the API', async () => {
    const reason = 'connect ECONNREFUSED 10.0.0.1:5432'
    const { response, text, lines } = await requestMetrics(() => Promise.reject(new Error(reason)))
    expect(response.status).toBe(500)
    expect(JSON.parse(text)).toMatchObject({ code: 'internal' })
    expect(text).not.toContain('10.0.0.1')
    expect(lines.join()).toContain(reason)
    expect(lines.join()).not.toContain('rdv_')
  })
})

test('a migration without the privilege is rejected with what an administrator can do', async () => {
  const denied = Object.assign(new Error('permission denied'), { code: '42501' })
  const query = async () => ({ rows: [] })
  const pool = { query, connect: () => Promise.reject(denied) } as unknown as Pool
  await expect(migrateServer(pool)).rejects.toThrow(
    'run the output of `redrive migrate --print-sql`',
  )
})

test('a log with an unknown level is rejected with the list of levels', () => {
  expect(() => createLog({ level: 'foo' })).toThrow(
    "--log-level: expected one of trace, debug, info, warn, error, fatal, silent, got 'foo'.",
  )
  expect(createLog({ level: 'silent' }).level).toBe('silent')
})

test('a log does not contain credentials', () => {
  const { log, lines } = recordingLog()
  log.info(
    { authorization: 'hunter2', headers: { cookie: 'hunter2' }, a: { b: { token: 'hunter2' } } },
    'x',
  )
  expect(lines.join()).toContain('***')
  expect(lines.join()).not.toContain('hunter2')
})
