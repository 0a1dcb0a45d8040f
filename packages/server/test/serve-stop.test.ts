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
  test('turns readiness off, answers who is in, then closes and ends with 0', async () => {
    const config = { ...BASE, limits: { search: '30s' }, shutdown: { grace: '20s', notice: '5s' } }
    const server = await serving(config)
    expect((await server.get('/readyz')).status).toBe(200)
    const client = await pool.connect()
    await client.query('begin; lock table redrive_catalog.failure_group in access exclusive mode')
    const asked = server.getAndStay('/api/v1/groups')
    await lockIsAwaited()
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
    await lockIsAwaited()
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
