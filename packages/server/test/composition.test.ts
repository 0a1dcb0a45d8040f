import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { Admin, Producer } from '@platformatic/kafka'
import { emptyDatabase, poolOn, urlOf } from '@redrive/dev-support'
import { migrate, outbox } from '@redrive/postgres'
import { until } from '@redrive/testing'
import { connect } from 'amqplib'
import { afterAll, describe, expect, test } from 'vitest'
import { openSources } from '../src/composition.ts'
import { readConfig } from '../src/config/load.ts'
import { createLog, migrateAll } from '../src/index.ts'
import { missingInAll } from '../src/composition.ts'
import { createPools } from '../src/start/pools.ts'
import { rabbitmqUrl } from './serve-stage.ts'

const url = await emptyDatabase('redrive_server_composition')
const pool = poolOn(url)
afterAll(() => pool.end())

/** Opens the only source of a config. */
function openOnly(source: object) {
  const raw = { database: { url }, auth: { development: {} }, sources: { named: source } }
  const config = readConfig(raw, { env: {}, cwd: '/', from: 'a test' })
  const pools = createPools(config, createLog({ level: 'silent' }))
  const [open] = openSources(config, pools)
  if (open === undefined) throw new Error('Expected a source.')
  const close = async () => {
    await open.source.close()
    await pools.close()
  }
  return { open, close }
}

test('migrateAll applies each missing migration once, also when two processes run it', async () => {
  const missing = await missingInAll(pool)
  expect(new Set(missing.map((one) => one.split(' ')[0]))).toEqual(
    new Set(['redrive', 'redrive_catalog', 'redrive_server']),
  )
  const other = poolOn(url)
  const applied = await Promise.all([migrateAll(pool), migrateAll(other)])
  await other.end()
  expect(applied.flat().toSorted()).toEqual(missing.toSorted())
  expect(await missingInAll(pool)).toEqual([])
})

test('the limits of an ingest are those of the config, and checked there', async () => {
  const limits = { batch: 20, maxPayloadBytes: 1_000, maxBytesInFlight: 8_388_608 }
  const { open, close } = openOnly({ postgres: { queue: 'orders' }, ...limits })
  expect(open.ingest).toMatchObject(limits)
  await close()
  expect(() => openOnly({ postgres: { queue: 'orders' }, maxBytesInFlight: 1_000 })).toThrow(
    'sources.named.maxBytesInFlight',
  )
})

describe('the consumer lag', () => {
  test('is the number of messages in a RabbitMQ queue', async () => {
    const mq = await rabbitmqUrl()
    const queue = `lag-${randomUUID().slice(0, 8)}`
    const connection = await connect(mq)
    const channel = await connection.createConfirmChannel()
    await channel.assertQueue(queue, { durable: true })
    for (let at = 0; at < 3; at++) channel.sendToQueue(queue, Buffer.from('{}'))
    await channel.waitForConfirms()
    const { open, close } = openOnly({ rabbitmq: { url: mq, queue }, replay: { maxLag: 2 } })
    expect(open).toMatchObject({ name: 'named', kind: 'rabbitmq', maxLag: 2 })
    expect(await open.lag?.()).toBe(3)
    expect(await open.source.depth()).toBe(0)
    await close()
    await channel.deleteQueue(queue)
    await connection.close()
  })

  test('is the lag of a Kafka group', async () => {
    const broker = await urlOf('kafka')
    const topic = `lag-${randomUUID().slice(0, 8)}`
    const base = { clientId: 'test', bootstrapBrokers: [broker] }
    const admin = new Admin(base)
    await admin.createTopics({ topics: [topic], partitions: 2, replicas: 1 })
    await until('the topic exists', () => admin.listTopics(), {
      accept: (topics) => topics.includes(topic),
    })
    const producer = new Producer({ ...base, autocreateTopics: false })
    const value = Buffer.from('{}')
    // One message per request: a request with a partition without a leader is repeated as a whole.
    for (const partition of [0, 1, 0, 1, 0]) {
      await producer.send({ messages: [{ topic, partition, value }] })
    }
    const kafka = { brokers: broker, topic, group: 'web' }
    const { open, close } = openOnly({ kafka, replay: { maxLag: 10 } })
    expect(open).toMatchObject({ kind: 'kafka', maxLag: 10 })
    expect(await open.lag?.()).toBe(5)
    // The dead-letter topic does not exist yet: there are no dead letters, and drain does not wait.
    expect(await open.source.depth()).toBe(0)
    expect((await open.source.drain({ limit: 1 })).deadLetters).toEqual([])
    await close()
    await producer.close()
    await admin.deleteTopics({ topics: [topic] })
    await admin.close()
  })

  test('is the number of events of an outbox that are due', async () => {
    const box = outbox({ queue: 'lagging' })
    await box.addMany(pool, [{ body: 1 }, { body: 2 }, { body: 3, delay: '1h' }])
    const { open, close } = openOnly({ postgres: { queue: 'lagging' }, replay: { maxLag: 0 } })
    expect(open).toMatchObject({ kind: 'postgres', maxLag: 0 })
    expect(await open.lag?.()).toBe(2)
    expect(await open.source.depth()).toBe(0)
    await close()
  })

  test('is not requested unless the config sets a limit', async () => {
    const { open, close } = openOnly({ postgres: { queue: 'lagging' } })
    expect(open.lag).toBeUndefined()
    expect(open.health).toBeUndefined()
    expect(open.handled).toBeUndefined()
    await close()
  })
})

test('the health check calls the health URL of the consumers', async () => {
  let status = 200
  const server = createServer((_, response) => response.writeHead(status).end('x')).listen(0)
  await once(server, 'listening')
  const { port } = server.address() as { readonly port: number }
  const health = `http://127.0.0.1:${port}/health?key=hunter2`
  const { open, close } = openOnly({ postgres: { queue: 'q' }, replay: { health } })
  const signal = AbortSignal.timeout(5_000)
  await expect(open.health?.({ signal })).resolves.toBeUndefined()
  status = 503
  await expect(open.health?.({ signal })).rejects.toThrow(`127.0.0.1:${port} returned status 503`)
  await close()
  server.close()
})

test('a source and its inbox use the schema of the config', async () => {
  await migrate(pool, { schema: 'order' })
  const { queue, schema } = { queue: 'elsewhere', schema: 'order' }
  await outbox({ queue, schema }).add(pool, { body: 1 })
  const text = `insert into "order".event_handled (consumer, key, fingerprint) values ('billing', 'b', '')`
  await pool.query(text)
  const { open, close } = openOnly({
    postgres: { queue, schema },
    replay: { maxLag: 0, inbox: { consumer: 'billing', schema } },
  })
  expect(await open.lag?.()).toBe(1)
  expect(await open.handled?.(['a', 'b', 'c'])).toEqual(new Set(['b']))
  await close()
})

test('handled() returns the keys in the inbox of the consumer', async () => {
  await pool.query(
    `insert into redrive.event_handled (consumer, key, fingerprint) values ('billing', 'a', ''), ('other', 'b', '')`,
  )
  const { open, close } = openOnly({
    postgres: { queue: 'q' },
    replay: { inbox: { consumer: 'billing' } },
  })
  expect(await open.handled?.(['a', 'b', 'c'])).toEqual(new Set(['a']))
  await close()
})

describe('a dead letter with another queue as its origin', () => {
  async function replayed(special: { readonly replay?: object } = {}) {
    const mq = await rabbitmqUrl()
    const [queue, other, dead] = ['queue', 'other', 'dead'].map(
      (name) => `${name}-${randomUUID().slice(0, 8)}`,
    ) as [string, string, string]
    const connection = await connect(mq)
    const channel = await connection.createConfirmChannel()
    for (const name of [queue, other, dead]) await channel.assertQueue(name, { durable: true })
    const origins = special.replay === undefined ? {} : { replay: { allowedOrigins: [other] } }
    const rabbitmq = { url: mq, queue, deadLetterQueues: [dead] }
    const { open, close } = openOnly({ rabbitmq, ...origins })
    const send = async (headers: object) => {
      channel.sendToQueue(dead, Buffer.from('{}'), { messageId: randomUUID(), headers })
      await channel.waitForConfirms()
      const batch = await open.source.drain({ limit: 1 })
      const [deadLetter] = batch.deadLetters
      if (deadLetter === undefined) throw new Error('Expected a dead letter.')
      const published = open.source.publish({ deadLetter, replayId: randomUUID() })
      const outcome = await published.then(
        () => 'sent',
        (error: Error) => error.message,
      )
      await batch.release()
      return outcome
    }
    const counts = async () => {
      const all = await Promise.all([queue, other].map((name) => channel.checkQueue(name)))
      return all.map(({ messageCount }) => messageCount)
    }
    const toOther = await send({ 'NServiceBus.FailedQ': other })
    const toQueue = await send({ 'NServiceBus.FailedQ': queue })
    const messageCounts = await counts()
    await close()
    for (const name of [queue, other, dead]) await channel.deleteQueue(name)
    await connection.close()
    return { toOther, toQueue, messageCounts }
  }

  test('is not replayed to that queue', async () => {
    const { toOther, toQueue, messageCounts } = await replayed()
    expect(toOther).toMatch(/origin "other-.*sources\.named\.replay\.allowedOrigins/)
    expect(toQueue).toBe('sent')
    expect(messageCounts).toEqual([1, 0])
  })

  test('is replayed to that queue when replay.allowedOrigins lists it', async () => {
    const { toOther, messageCounts } = await replayed({ replay: {} })
    expect(toOther).toBe('sent')
    expect(messageCounts).toEqual([1, 1])
  })
})

test('openSources passes on the ingest settings and nothing else', async () => {
  const settings = {
    handler: 'billing',
    retention: '30d',
    mask: ['/card'],
    maskHeaders: ['x-customer'],
    extract: { order: '/id' },
  }
  const { open, close } = openOnly({ postgres: { queue: 'q' }, ...settings })
  // The config has a default for each retention.
  expect(open.ingest).toEqual({ ...settings, openRetention: '90d' })
  await close()
})
