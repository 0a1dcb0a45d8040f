import { randomUUID } from 'node:crypto'
import { Admin, Producer } from '@platformatic/kafka'
import { type Catalog, catalog } from '@redrive/catalog'
import { encodeHeaders, FIRST_CYCLE } from '@redrive/core'
import { emptyDatabase, poolOn, urlOf } from '@redrive/dev-support'
import { replayedTopic } from '@redrive/kafka'
import { replayedQueue, topologyOf } from '@redrive/rabbitmq'
import { until } from '@redrive/testing'
import { connect } from 'amqplib'
import { afterAll, describe, expect, test } from 'vitest'
import { type OpenSource, openSources } from '../src/composition.ts'
import { readConfig } from '../src/config/load.ts'
import { createLog, migrateAll } from '../src/index.ts'
import { createPools } from '../src/start/pools.ts'
import { rabbitmqUrl } from './serve-stage.ts'

const url = await emptyDatabase('redrive_server_replay_sources')
const pool = poolOn(url)
afterAll(() => pool.end())
await migrateAll(pool)

interface Death {
  readonly id: string
  readonly body: string
  readonly replayId?: string
}

/** Two sources of one broker. A user of one of them can write to its queues and to no others. */
interface Broker {
  readonly sources: Readonly<Record<Name, object>>
  /** Puts a dead letter where the consumers of that source put theirs. */
  die(source: Name, death: Death): Promise<void>
  /** Puts a confirmation where the consumers of that source put theirs. */
  confirm(source: Name, replayId: string): Promise<void>
  close(): Promise<void>
}
type Name = 'orders' | 'billing'
const NAMES: readonly Name[] = ['orders', 'billing']

const named = () => {
  const run = randomUUID().slice(0, 8)
  return { orders: `orders-${run}`, billing: `billing-${run}` }
}

function headersOf(source: string, { id, replayId }: Death): Readonly<Record<string, string>> {
  const at = Date.now()
  const failure = { class: 'business', signature: '1-00000000000000aa', code: 'E1' } as const
  const error = { type: 'Declined', message: 'card declined' }
  const history = [{ number: 1, at, waitedMs: 0, ...failure, ...error, counted: true }]
  const number = replayId === undefined ? 1 : 2
  const cycle = { ...FIRST_CYCLE, number, attempts: 1, firstFailedAt: at, history }
  return encodeHeaders({ id, key: id, source, replayId, cycle, reason: 'not_retryable' }).headers
}

const confirmationOf = (replayId: string) =>
  Buffer.from(JSON.stringify({ version: 1, replayId, outcome: 'handled', at: Date.now() }))

async function rabbitmqBroker(): Promise<Broker> {
  const queues = named()
  const deadQueue = (name: Name) => topologyOf(queues[name], 'quorum').deadLetters.name
  const mq = await rabbitmqUrl()
  const connection = await connect(mq)
  const channel = await connection.createConfirmChannel()
  const all = NAMES.flatMap((name) => [queues[name], deadQueue(name), replayedQueue(queues[name])])
  for (const queue of all) await channel.assertQueue(queue, { durable: true })
  const source = (name: Name) => ({
    rabbitmq: { url: mq, queue: queues[name], deadLetterQueues: [deadQueue(name)] },
  })
  return {
    sources: { orders: source('orders'), billing: source('billing') },
    async die(name, death) {
      const headers = headersOf(queues.orders, death)
      channel.sendToQueue(deadQueue(name), Buffer.from(death.body), {
        messageId: death.id,
        persistent: true,
        headers,
      })
      await channel.waitForConfirms()
    },
    async confirm(name, replayId) {
      channel.sendToQueue(replayedQueue(queues[name]), confirmationOf(replayId))
      await channel.waitForConfirms()
    },
    async close() {
      for (const queue of all) await channel.deleteQueue(queue)
      await connection.close()
    },
  }
}

async function kafkaBroker(): Promise<Broker> {
  const broker = await urlOf('kafka')
  const base = { clientId: 'test', bootstrapBrokers: [broker] }
  const admin = new Admin(base)
  const topics = named()
  const deadTopic = (name: Name) => `${topics[name]}.dead`
  const confirmationTopic = (name: Name) => replayedTopic(topics[name], 'web')
  const all = NAMES.flatMap((name) => [topics[name], deadTopic(name), confirmationTopic(name)])
  await admin.createTopics({ topics: all, partitions: 1, replicas: 1 })
  await until('the topics are known', () => admin.listTopics(), {
    accept: (known) => all.every((topic) => known.includes(topic)),
  })
  const producer = new Producer({ ...base, autocreateTopics: false })
  const source = (name: Name) => ({
    kafka: {
      brokers: broker,
      topic: topics[name],
      group: 'web',
      deadLetterTopics: [deadTopic(name)],
    },
  })
  return {
    sources: { orders: source('orders'), billing: source('billing') },
    async die(name, death) {
      const entries = Object.entries(headersOf(topics.orders, death))
      const headers = new Map(entries.map(([key, text]) => [Buffer.from(key), Buffer.from(text)]))
      const value = Buffer.from(death.body)
      await producer.send({ messages: [{ topic: deadTopic(name), value, headers }] })
    },
    async confirm(name, replayId) {
      const value = confirmationOf(replayId)
      await producer.send({ messages: [{ topic: confirmationTopic(name), value }] })
    },
    async close() {
      await producer.close()
      await admin.deleteTopics({ topics: all })
      await admin.close()
    },
  }
}

/** A dead letter is a row; a replay reopens the row, so a failure after it closes the same row again. */
const DIE = `
insert into redrive.outbox (id, queue, payload, status, due_at, failed_at, first_failed_at, attempts, reason, replay_id)
  values ($1, $2, $3, 'failed', null, now(), now(), 1, 'not_retryable', $4)
  on conflict (id) do update set status = 'failed', due_at = null, failed_at = now(), first_failed_at = now(),
    attempts = 1, reason = 'not_retryable'`

const CONFIRM = `
insert into redrive.replay_confirmation (queue, replay_id, outcome) values ($1, $2, 'handled')`

async function postgresBroker(): Promise<Broker> {
  const queues = named()
  return {
    sources: {
      orders: { postgres: { queue: queues.orders } },
      billing: { postgres: { queue: queues.billing } },
    },
    async die(name, { id, body, replayId }) {
      await pool.query(DIE, [id, queues[name], Buffer.from(body), replayId ?? null])
    },
    async confirm(name, replayId) {
      await pool.query(CONFIRM, [queues[name], replayId])
    },
    close: async () => undefined,
  }
}

async function staged(broker: Broker) {
  const raw = { database: { url }, auth: { development: {} }, sources: broker.sources }
  const config = readConfig(raw, { env: {}, cwd: '/', from: 'a test' })
  const pools = createPools(config, createLog({ level: 'silent' }))
  const open = new Map(openSources(config, pools).map((one) => [one.name, one]))
  const made = catalog({ pool, approval: 'anyone' })
  const replayer = made.replays.replayer({ sources: [...open.values()] })
  const of = (name: Name) => open.get(name) as OpenSource
  return {
    made,
    replayer,
    of,
    ingested: (name: Name) => ingestedOnce(made, of(name)),
    async close() {
      await Promise.all([...open.values()].map(({ source }) => source.close()))
      await pools.close()
      await broker.close()
    },
  }
}
type Stage = Awaited<ReturnType<typeof staged>>

/** Ingests until something has arrived. */
const ingestedOnce = (made: Catalog, { name, source }: OpenSource) =>
  until('something is ingested', () => made.ingest(source, { name }), {
    accept: ({ added, failedAgain, known }) => added + failedAgain + known > 0,
  })

const ORIGINAL = '{"order":"original"}'
const FORGED = '{"order":"forged"}'

/** A dead letter of orders whose replay is published. */
async function published({ made, replayer, of, ingested }: Stage, broker: Broker) {
  const id = randomUUID()
  const replayIds = replayIdsOf(of('orders'))
  await broker.die('orders', { id, body: ORIGINAL })
  expect(await ingested('orders')).toMatchObject({ added: 1 })
  const { deadLetters } = await made.deadLetters({ after: 0, sources: ['orders'] })
  const deadLetter = deadLetters.find(({ messageId }) => messageId === id)?.id ?? ''
  const run = await made.replays.plan({ selection: { ids: [deadLetter] }, by: 'ada' })
  await made.replays.approve(run.id, { hash: run.hash, by: 'ada' })
  const publishedItems = async () => {
    await replayer.turn()
    return made.replays.items({ run: run.id })
  }
  await until('the replay is published', publishedItems, {
    accept: ([item]) => item?.state === 'published',
  })
  return { id, deadLetter, run: run.id, replayId: replayIds[0] ?? '' }
}

/** Collects the signed replay ids that are published from now on. Only messages contain them. */
function replayIdsOf({ source }: OpenSource): readonly string[] {
  const found: string[] = []
  const publish = source.publish.bind(source)
  source.publish = (message) => {
    found.push(message.replayId)
    return publish(message)
  }
  return found
}

/** Takes confirmations of a source until one was read and released. */
async function confirmedOnce({ replayer, of }: Stage, name: Name): Promise<void> {
  const { source } = of(name)
  const read = source.confirmations.bind(source)
  let count = 0
  source.confirmations = async (options) => {
    const batch = await read(options)
    count += batch.confirmations.length
    return batch
  }
  await until('a confirmation is read', async () => {
    await replayer.confirm(name)
    return count > 0
  })
}

const bodyOf = async ({ made }: Stage, id: string) =>
  Buffer.from((await made.deadLetter(id))?.drained.delivery.bytes ?? []).toString()

describe.each([
  ['RabbitMQ', rabbitmqBroker],
  ['Kafka', kafkaBroker],
  ['PostgreSQL', postgresBroker],
])('two sources of %s', (_, brokerOf) => {
  test('a returned message counts only in the source of its replay', async () => {
    const broker = await brokerOf()
    const stage = await staged(broker)
    const { id, deadLetter, replayId } = await published(stage, broker)
    await broker.die('billing', { id: randomUUID(), body: FORGED, replayId })
    expect(await stage.ingested('billing')).toMatchObject({ added: 1, failedAgain: 0 })
    expect(await stage.made.deadLetter(deadLetter)).toMatchObject({ status: 'replaying', cycle: 1 })
    expect(await bodyOf(stage, deadLetter)).toBe(ORIGINAL)
    await broker.die('orders', { id, body: ORIGINAL, replayId })
    expect(await stage.ingested('orders')).toMatchObject({ added: 0, failedAgain: 1 })
    expect(await stage.made.deadLetter(deadLetter)).toMatchObject({ status: 'open', cycle: 2 })
    expect(await bodyOf(stage, deadLetter)).toBe(ORIGINAL)
    await stage.close()
  })

  test('a confirmation counts only in the source of its replay', async () => {
    const broker = await brokerOf()
    const stage = await staged(broker)
    const { deadLetter, replayId } = await published(stage, broker)
    await broker.confirm('billing', replayId)
    await confirmedOnce(stage, 'billing')
    expect(await stage.made.deadLetter(deadLetter)).toMatchObject({ status: 'replaying' })
    await broker.confirm('orders', replayId)
    await confirmedOnce(stage, 'orders')
    expect(await stage.made.deadLetter(deadLetter)).toMatchObject({ status: 'resolved' })
    expect(await bodyOf(stage, deadLetter)).toBe(ORIGINAL)
    await stage.close()
  })
})
