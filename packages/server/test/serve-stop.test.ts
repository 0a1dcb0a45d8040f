import { randomUUID } from 'node:crypto'
import { until } from '@redrive/testing'
import { describe, expect, test } from 'vitest'
import { rabbitmqUrl, serveDatabase, serving } from './serve-stage.ts'

const mq = await rabbitmqUrl()
const { pool, base: BASE } = await serveDatabase('redrive_server_stop')

/** Resolves when a request of the server waits for a lock of this test. */
const lockIsAwaited = () =>
  until(
    'a session that waits for a lock',
    async () =>
      (
        await pool.query(`select from pg_stat_activity where wait_event_type = 'Lock'
        and application_name = 'redrive server' and datname = current_database()`)
      ).rowCount,
    { accept: (count) => count > 0 },
  )

describe('SIGTERM', () => {
  test('makes the server report not ready, complete open requests and exit with 0', async () => {
    const config = {
      ...BASE,
      limits: { searchTimeout: '30s' },
      shutdown: { grace: '20s', readinessDelay: '5s' },
    }
    const server = await serving(config)
    expect((await server.get('/readyz')).status).toBe(200)
    const client = await pool.connect()
    await client.query('begin; lock table redrive_catalog.failure_group in access exclusive mode')
    const response = server.getKeepAlive('/api/v1/groups')
    await lockIsAwaited()
    const signalledAt = performance.now()
    server.signal('SIGTERM')
    // The server still accepts connections and reports 503, so that a load balancer notices.
    const readiness = await until(
      'a response that is not ready',
      async () => {
        const response = await server.get('/readyz')
        return { status: response.status, text: await response.text() }
      },
      { accept: ({ status }) => status !== 200 },
    )
    expect(readiness).toEqual({ status: 503, text: 'not ready: stopping\n' })
    expect((await server.get('/livez')).status).toBe(200)
    // Then the server rejects new connections while the open request still waits.
    await until(
      'a refused connection',
      () =>
        server.get('/livez').then(
          () => 'accepted',
          (error: TypeError) => (error.cause as NodeJS.ErrnoException).code,
        ),
      { accept: (result) => result === 'ECONNREFUSED' },
    )
    await client.query('rollback')
    client.release()
    expect(await response).toMatchObject({
      status: 200,
      body: { groups: expect.any(Array) as unknown },
    })
    expect(await server.exited).toBe(0)
    expect(performance.now() - signalledAt).toBeLessThan(20_000)
    expect(server.output).toContain('"msg":"Stopped."')
  })

  test('ends the server after the grace period and logs requests that did not finish', async () => {
    const config = {
      ...BASE,
      limits: { searchTimeout: '1m' },
      shutdown: { grace: '2s', readinessDelay: '0ms' },
    }
    const server = await serving(config, 'api')
    const client = await pool.connect()
    await client.query('begin; lock table redrive_catalog.failure_group in access exclusive mode')
    const response = server.get('/api/v1/groups').catch(() => 'closed')
    await lockIsAwaited()
    server.signal('SIGTERM')
    expect(await server.exited).toBe(1)
    expect(server.output).toContain('Shutdown did not finish within 2000 ms: requests')
    expect(await response).toBe('closed')
    await client.query('rollback')
    client.release()
  })

  test('exits immediately at the second signal', async () => {
    const server = await serving(
      { ...BASE, shutdown: { grace: '30s', readinessDelay: '15s' } },
      'api',
    )
    server.signal('SIGTERM')
    await server.waitForOutput('Stopping within')
    server.signal('SIGINT')
    expect(await server.exited).toBe(130)
  })

  test('releases all leases, so that other processes can continue immediately', async () => {
    await pool.query('delete from redrive.outbox')
    const leasedQueues = async () => {
      const { rows } = await pool.query<{ queue: string }>(
        `select queue from redrive.outbox where status = 'in_flight' and lease_until > now() order by queue, type`,
      )
      return rows.map((row) => row.queue)
    }
    const queue = `lease-${randomUUID().slice(0, 8)}`
    const sources = { [queue]: { rabbitmq: { url: mq, queue } } }
    const server = await serving({ ...BASE, sources }, 'ingest,replay')
    const busy = ['redrive.catalog.ingest', 'redrive.catalog.replay']
    await until('the busy queues', async () => [...new Set(await leasedQueues())], {
      accept: (queues) => queues.join() === busy.join(),
    })
    server.signal('SIGTERM')
    expect(await server.exited).toBe(0)
    expect(await leasedQueues()).toEqual([])
  })
})
