import { randomUUID } from 'node:crypto'
import { freePort } from '@redrive/dev-support'
import { rabbitmq } from '@redrive/rabbitmq'
import { consume } from '@redrive/runtime'
import { memoryInbox } from '@redrive/testing'
import { until } from '@redrive/testing'
import { connect } from 'amqplib'
import { describe, expect, test } from 'vitest'
import { rabbitmqUrl, serveDatabase, serving } from './serve-stage.ts'

const mq = await rabbitmqUrl()
const { pool, base: BASE } = await serveDatabase('redrive_server_serve')

/** Starts a consumer on a new queue. Every message fails and becomes a dead letter until `fix` is called. */
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
  readonly sources: readonly {
    readonly source: string
    readonly broker?: string
    readonly open: number
    readonly state: { readonly status: string; readonly problem?: string; readonly depth?: number }
  }[]
}
interface Run {
  readonly id: string
  readonly hash: string
  readonly state: string
  readonly counts: Readonly<Record<string, number>>
}

describe('processes with different roles', () => {
  test('run only the jobs of their roles', async () => {
    await pool.query('delete from redrive.outbox')
    const { queue, ids, effects, fix, end } = await shop(40)
    const sources = { [queue]: { rabbitmq: { url: mq, queue }, replay: { maxLag: 1_000 } } }
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
    // No process has the role `replay`, so no job of it is in the outbox.
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
  })

  test('report their roles in metrics and readiness', async () => {
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

describe('the start', () => {
  test('succeeds with an unreachable broker, reports it and ingests from the others', async () => {
    const { queue, ids, end } = await shop(3)
    const gone = `amqp://guest:hunter2@127.0.0.1:${await freePort()}`
    const sources = {
      [queue]: { rabbitmq: { url: mq, queue } },
      gone: { rabbitmq: { url: gone, queue: 'gone' } },
      typo: { rabbitmq: { url: mq, queue: 'no-such-queue' } },
    }
    const server = await serving({ ...BASE, sources })
    await until(
      'all dead letters',
      async () => (await server.json<Sources>('/api/v1/sources')).sources,
      { accept: (seen) => seen.find(({ source }) => source === queue)?.open === ids.length },
    )
    expect(server.output).toContain(
      String.raw`Source \"${queue}\": moves the dead letters of \"${queue}\" from rabbitmq into the catalog, and removes them from the broker. 3 wait now.`,
    )
    await server.waitForOutput(String.raw`Source \"gone\": rabbitmq is not reachable: `)
    await server.waitForOutput(String.raw`\"no-such-queue.dlq\" does not exist in the broker.`)
    const states = await until(
      'the state of all sources',
      async () => (await server.json<Sources>('/api/v1/sources')).sources,
      { accept: (seen) => seen.every(({ state }) => state.status !== 'not_checked') },
    )
    const sourceOf = (name: string) => states.find(({ source }) => source === name)
    const stateOf = (name: string) => sourceOf(name)?.state
    for (const name of Object.keys(sources))
      expect(sourceOf(name)).toMatchObject({ broker: 'rabbitmq' })
    expect(stateOf(queue)).toMatchObject({ status: 'connected', lag: 0 })
    expect(stateOf('gone')).toMatchObject({ status: 'unreachable' })
    expect(stateOf('gone')?.problem).toContain('cannot reach the broker')
    expect(stateOf('gone')?.depth).toBeUndefined()
    expect(stateOf('typo')).toMatchObject({ status: 'missing_queue' })
    expect(stateOf('typo')?.problem).toContain('"no-such-queue.dlq" does not exist')
    const verbose = await until(
      'the state of both brokers',
      () => server.json<{ brokers: object }>('/readyz?verbose'),
      { accept: ({ brokers }) => !JSON.stringify(brokers).includes('"unknown":1') },
    )
    expect(verbose).toMatchObject({
      isReady: true,
      brokers: { rabbitmq: { answering: 2, silent: 1, unknown: 0 } },
    })
    const text = await (await server.get('/metrics')).text()
    expect(text).toContain('redrive_broker_up{source="gone",broker="rabbitmq"} 0')
    expect(text).toContain('redrive_broker_missing_queues{source="typo"} 1')
    expect(text).toMatch(
      new RegExp(`redrive_last_ingest_timestamp_seconds\\{source="${queue}"\\} \\d+`),
    )
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
