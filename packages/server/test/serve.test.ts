import { generateKeyPairSync, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { emptyDatabase, poolOn } from '@redrive/dev-support'
import { rabbitmq } from '@redrive/rabbitmq'
import { consume } from '@redrive/runtime'
import { memoryInbox } from '@redrive/testing'
import { until } from '@redrive/testing'
import { connect } from 'amqplib'
import { afterAll, describe, expect, test } from 'vitest'
import { migrateAll } from '../src/index.ts'
import {
  forwarding,
  freePort,
  rabbitmqUrl,
  refused,
  ServerProcess,
  serving,
} from './serve-stage.ts'

const mq = await rabbitmqUrl()
const url = await emptyDatabase('redrive_server_serve')
const pool = poolOn(url)
afterAll(() => pool.end())
await migrateAll(pool)

const auth = { development: {} }
/** Ends soon, because nobody stands before these tests who would have to notice. */
const shutdown = { grace: '10s', notice: '300ms' }
const BASE = { database: { url }, auth, sources: {}, approval: 'anyone', shutdown }

/** A queue of the test's own; its dead letters come from a consumer that fails until it is fixed. */
async function shop(count: number) {
  const queue = `serve-${randomUUID().slice(0, 8)}`
  const effects: string[] = []
  let isFixed = false
  const consumer = await consume(
    rabbitmq({ url: mq, queue }),
    (message, { tx }) => {
      if (!isFixed) throw new Error('price is missing')
      tx.onCommit(() => void effects.push(message.id))
    },
    {
      inbox: memoryInbox(),
      retry: { attempts: 1 },
      poison: 'off',
      flood: 'off',
      breaker: 'off',
      outage: 'off',
    },
  )
  const connection = await connect(mq)
  const channel = await connection.createConfirmChannel()
  const ids = Array.from({ length: count }, (_, at) => `${queue}-${at}`)
  for (const messageId of ids) channel.sendToQueue(queue, Buffer.from('{}'), { messageId })
  await channel.waitForConfirms()
  const fix = () => {
    isFixed = true
  }
  const end = async () => {
    await consumer.stop()
    for (const one of [queue, `${queue}.dlq`]) await channel.deleteQueue(one)
    await connection.close()
  }
  return { queue, ids, effects, fix, end }
}

interface Sources {
  readonly sources: readonly { readonly source: string; readonly open: number }[]
}
interface Run {
  readonly id: string
  readonly hash: string
  readonly state: string
  readonly counts: Readonly<Record<string, number>>
}

describe('processes with different roles', () => {
  test('do their own work and leave that of the others alone', async () => {
    await pool.query('delete from redrive.outbox')
    const { queue, ids, effects, fix, end } = await shop(40)
    const sources = { [queue]: { rabbitmq: { url: mq, queue }, replay: { mostLag: 1_000 } } }
    const config = { ...BASE, sources }
    const [api, ingest] = await Promise.all([serving(config, 'api'), serving(config, 'ingest')])
    await until(
      'all dead letters',
      async () => (await api.json<Sources>('/api/v1/sources')).sources,
      { accept: (seen) => seen.find(({ source }) => source === queue)?.open === ids.length },
    )
    fix()
    const { groups } = await api.json<{ groups: readonly { id: string; source: string }[] }>(
      `/api/v1/groups?sources=${queue}`,
    )
    const selection = { group: groups[0]?.id }
    const plan = await api.json<Run>('/api/v1/replays', { selection, ratePerSecond: 1_000 })
    await api.json<Run>(`/api/v1/replays/${plan.id}/approve`, { hash: plan.hash })
    // Chores of the role that nobody has are not even asked for, so nobody could have taken one.
    const { rows } = await pool.query('select distinct queue, type from redrive.outbox')
    expect(rows).toEqual([{ queue: 'redrive.catalog.ingest', type: 'ingest' }])
    const waiting = await api.json<Run>(`/api/v1/replays/${plan.id}`)
    expect(waiting).toMatchObject({ state: 'running', counts: { queued: ids.length } })
    expect((await ingest.get('/api/v1/sources')).status).toBe(404)

    const replayers = await Promise.all([serving(config, 'replay'), serving(config, 'replay')])
    const done = await until(
      'the end of the run',
      () => api.json<Run>(`/api/v1/replays/${plan.id}`),
      { accept: ({ state }) => state !== 'running' },
    )
    expect(done).toMatchObject({ state: 'done', counts: { resolved: ids.length } })
    expect(effects.toSorted()).toEqual(ids.toSorted())
    for (const one of [api, ingest, ...replayers]) one.signal('SIGTERM')
    const codes = await Promise.all([api, ingest, ...replayers].map((one) => one.exited))
    expect(codes).toEqual([0, 0, 0, 0])
    await end()
  }, 60_000)

  test('say what they are in their metrics and readiness', async () => {
    const port = await freePort()
    const config = { ...BASE, metrics: { listen: `127.0.0.1:${port}` } }
    const server = await serving(config, 'watch,ingest')
    const verbose = await server.json<object>('/readyz?verbose')
    expect(verbose).toEqual({
      isReady: true,
      roles: ['ingest', 'watch'],
      checks: { process: 'ok', database: 'ok', migrations: 'ok' },
      brokers: {},
    })
    const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
    expect(text).toMatch(
      /^redrive_build_info\{version="[^"]+",node="v[^"]+",roles="ingest,watch"\} 1$/m,
    )
    expect(text).toMatch(/^redrive_database_up 1$/m)
    expect(text).toMatch(/^process_resident_memory_bytes /m)
  })
})

describe('SIGTERM', () => {
  test('turns readiness off, answers who is in, then closes and ends with 0', async () => {
    const config = { ...BASE, limits: { search: '30s' }, shutdown: { grace: '20s', notice: '5s' } }
    const server = await serving(config)
    expect((await server.get('/readyz')).status).toBe(200)
    const client = await pool.connect()
    await client.query('begin; lock table redrive_catalog.failure_group in access exclusive mode')
    const asked = server.getAndStay('/api/v1/groups')
    await until(
      'a session that waits for a lock',
      async () =>
        (
          await pool.query(`select from pg_stat_activity where wait_event_type = 'Lock'
          and application_name = 'redrive server' and datname = current_database()`)
        ).rowCount,
      { accept: (count) => count > 0 },
    )
    const signalledAt = performance.now()
    server.signal('SIGTERM')
    // Still taken in, and told: that is what a load balancer needs to see.
    const off = await until(
      'a response that is not ready',
      async () => {
        const response = await server.get('/readyz')
        return { status: response.status, text: await response.text() }
      },
      { accept: ({ status }) => status !== 200 },
    )
    expect(off).toEqual({ status: 503, text: 'not ready: stopping\n' })
    expect((await server.get('/livez')).status).toBe(200)
    // Then nobody is taken in any more, while the one who is in still waits.
    await until(
      'a refused connection',
      () =>
        server.get('/livez').then(
          () => 'taken in',
          (error: TypeError) => (error.cause as NodeJS.ErrnoException).code,
        ),
      { accept: (how) => how === 'ECONNREFUSED' },
    )
    await client.query('rollback')
    client.release()
    expect(await asked).toMatchObject({
      status: 200,
      body: { groups: expect.any(Array) as unknown },
    })
    expect(await server.exited).toBe(0)
    expect(performance.now() - signalledAt).toBeLessThan(20_000)
    expect(server.output).toContain('"msg":"Stopped."')
  })

  test('ends inside the grace period although someone is never answered, and says who', async () => {
    const config = { ...BASE, limits: { search: '1m' }, shutdown: { grace: '2s', notice: '0ms' } }
    const server = await serving(config, 'api')
    const client = await pool.connect()
    await client.query('begin; lock table redrive_catalog.failure_group in access exclusive mode')
    const asked = server.get('/api/v1/groups').catch(() => 'cut')
    await until(
      'a session that waits for a lock',
      async () =>
        (
          await pool.query(`select from pg_stat_activity where wait_event_type = 'Lock'
          and application_name = 'redrive server' and datname = current_database()`)
        ).rowCount,
      { accept: (count) => count > 0 },
    )
    server.signal('SIGTERM')
    expect(await server.exited).toBe(1)
    expect(server.output).toContain('Not ended within 2000 ms: requests')
    expect(await asked).toBe('cut')
    await client.query('rollback')
    client.release()
  })

  test('a second time ends at once', async () => {
    const server = await serving({ ...BASE, shutdown: { grace: '30s', notice: '15s' } }, 'api')
    server.signal('SIGTERM')
    await server.says('Stopping, within')
    server.signal('SIGINT')
    expect(await server.exited).toBe(130)
  })

  test('leaves no lease behind, so that others go on at once', async () => {
    await pool.query('delete from redrive.outbox')
    const inHand = async () => {
      const { rows } = await pool.query<{ queue: string }>(
        `select queue from redrive.outbox where status = 'in_flight' and lease_until > now() order by queue, type`,
      )
      return rows.map((row) => row.queue)
    }
    const queue = `lease-${randomUUID().slice(0, 8)}`
    const sources = { [queue]: { rabbitmq: { url: mq, queue } } }
    const server = await serving({ ...BASE, sources }, 'ingest,replay')
    const busy = ['redrive.catalog.ingest', 'redrive.catalog.replay', 'redrive.catalog.replay']
    await until('the busy queues', inHand, { accept: (queues) => queues.join() === busy.join() })
    server.signal('SIGTERM')
    expect(await server.exited).toBe(0)
    expect(await inHand()).toEqual([])
  })
})

describe('a start', () => {
  test('is refused without authentication', async () => {
    const { auth: _, ...rest } = BASE
    const { code, said } = await refused(rest)
    expect(code).toBe(1)
    expect(said).toContain(
      '- auth: the server does not start without authentication. Say how people sign in (auth.oidc), or, to try it on this machine alone, auth.development.',
    )
  })

  test('is refused in development mode on an address that others can reach', async () => {
    const { code, said } = await refused({ ...BASE, listen: '0.0.0.0:0' })
    expect(code).toBe(1)
    expect(said).toContain('- listen: with auth.development everybody who can connect may do')
  })

  test('is refused when checkpoints of the audit cannot be kept, and then nothing goes on', async () => {
    const { privateKey } = generateKeyPairSync('ed25519', {
      privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
      publicKeyEncoding: { type: 'spki', format: 'pem' },
    })
    const { code, said } = await refused({
      ...BASE,
      sources: { orders: { rabbitmq: { url: mq, queue: 'orders' } } },
      audit: { signingKey: privateKey, checkpointFile: '/' },
    })
    expect(code).toBe(1)
    expect(said).toContain('EISDIR')
  })

  test('is refused without migrations, unless it may make them', async () => {
    const empty = await emptyDatabase('redrive_server_serve_empty')
    const config = { ...BASE, database: { url: empty } }
    const { code, said } = await refused(config)
    expect(code).toBe(1)
    expect(said).toMatch(
      /^The database lacks \d+ migrations: redrive 0001-outbox, .*redrive_catalog 0001-tables, .*redrive_server 0001-tables.*\. Run `redrive migrate` once, or say migrate: true\.$/m,
    )
    const server = await serving({ ...config, migrate: true }, 'api')
    expect(server.output).toContain('Applied the migration redrive_server 0001-tables.')
    expect((await server.get('/readyz')).status).toBe(200)
  })

  test('waits for a database that does not answer, for so long and no longer', async () => {
    const away = { url: `postgres://redrive@127.0.0.1:${await freePort()}/x`, waitFor: '1s' }
    const { code, said } = await refused({ ...BASE, database: away })
    expect(code).toBe(1)
    expect(said).toMatch(
      /The database does not answer \(.*ECONNREFUSED.*\)\. Trying again, for another 1 s\./,
    )
    expect(said).toMatch(
      /^The database does not answer, or does not let us in: .*ECONNREFUSED.*\. Look at database\.url\.$/m,
    )
  })

  test('succeeds when the database comes while it waits', async () => {
    const there = new URL(url)
    const port = await freePort()
    const away = new URL(url)
    away.host = `127.0.0.1:${port}`
    const config = { ...BASE, database: { url: away.href, waitFor: '20s' } }
    const server = new ServerProcess(config, { port: await freePort(), roles: 'api' })
    await server.says('The database does not answer')
    const proxy = await forwarding(port, { host: there.hostname, port: Number(there.port) })
    await server.says('"msg":"Serving api."')
    expect((await server.get('/readyz')).status).toBe(200)
    await server.kill()
    proxy.close()
    await once(proxy, 'close')
  })

  test('does not wait when the database says no', async () => {
    const wrong = new URL(url)
    wrong.pathname = '/there_is_no_such_database'
    const { code, said } = await refused({ ...BASE, database: { url: wrong.href, waitFor: '1h' } })
    expect(code).toBe(1)
    expect(said).toContain(
      'database "there_is_no_such_database" does not exist. Look at database.url.',
    )
  })

  test('does not need its brokers: they are reported, and the others work', async () => {
    const { queue, ids, end } = await shop(3)
    const gone = `amqp://guest:hunter2@127.0.0.1:${await freePort()}`
    const sources = {
      [queue]: { rabbitmq: { url: mq, queue } },
      gone: { rabbitmq: { url: gone, queue: 'gone' } },
    }
    const server = await serving({ ...BASE, sources })
    await until(
      'all dead letters',
      async () => (await server.json<Sources>('/api/v1/sources')).sources,
      { accept: (seen) => seen.find(({ source }) => source === queue)?.open === ids.length },
    )
    await server.says('The rabbitmq of gone does not answer: ')
    const verbose = await until(
      'the state of both brokers',
      () => server.json<{ brokers: object }>('/readyz?verbose'),
      { accept: ({ brokers }) => !JSON.stringify(brokers).includes('"unknown":1') },
    )
    expect(verbose).toMatchObject({
      isReady: true,
      brokers: { rabbitmq: { answering: 1, silent: 1, unknown: 0 } },
    })
    const text = await (await server.get('/metrics')).text()
    expect(text).toContain('redrive_broker_up{source="gone",broker="rabbitmq"} 0')
    expect(text).toContain(`redrive_dead_letters{source="${queue}",class="unknown"} 3`)
    expect(text).toMatch(
      /redrive_http_request_duration_seconds_count\{operation="listSources",status="200"\}/,
    )
    expect(server.output).not.toContain('hunter2')
    server.signal('SIGTERM')
    expect(await server.exited).toBe(0)
    await end()
  })
})

describe('metrics', () => {
  test('are for callers that may view everything, where the API is', async () => {
    const oidc = { issuer: 'https://id.example', clientId: 'redrive' }
    const config = { ...BASE, auth: { oidc }, publicUrl: 'https://redrive.example' }
    const server = await serving(config, 'api')
    const response = await server.get('/metrics')
    expect(response.status).toBe(401)
    expect(await response.text()).toBe(
      'Show a token: `Authorization: Bearer rdv_…`, or say metrics.listen in the config.\n',
    )
  })
})
