import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { urlOf } from '@redrive/dev-support'
import { type Config, loadConfig } from '@redrive/server'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { brokerAt, brokersIn } from '../src/server/brokers.ts'
import { run } from './world.ts'

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'redrive-brokers-'))
})
afterAll(() => rmSync(folder, { recursive: true }))

/** Writes a config with these sources and returns its path. */
const file = (sources: object, database = 'postgres://redrive@db/redrive'): string => {
  const path = join(folder, 'redrive.config.json')
  writeFileSync(
    path,
    JSON.stringify({ database: { url: database }, auth: { development: {} }, sources }),
  )
  return path
}
const config = async (sources: object): Promise<Config> =>
  (await loadConfig({ file: file(sources), env: {} })).config

const SCRAM = { mechanism: 'SCRAM-SHA-512', username: 'ada', password: 'hunter2' }

describe('the brokers of a config', () => {
  test('are listed once each, with all their sources', async () => {
    const rabbit = ['amqp://a@one/shop', 'amqp://a@two/shop']
    const kafka = { brokers: ['one:9092', 'two:9092'], tls: true, sasl: SCRAM }
    const found = await brokersIn(
      await config({
        orders: { rabbitmq: { url: rabbit, queue: 'orders' } },
        paid: { kafka: { ...kafka, topic: 'paid', group: 'billing', deadLetterTopics: ['dead'] } },
        invoices: { rabbitmq: { url: rabbit, queue: 'invoices', deadLetterQueues: ['errors'] } },
        sent: { kafka: { ...kafka, topic: 'sent', group: 'mail' } },
        outbox: { postgres: { queue: 'events' } },
        other: { postgres: { url: 'postgres://redrive@db/other', queue: 'events' } },
        mails: { nats: { url: 'nats://one:4222', stream: 'MAILS', consumer: 'mail' } },
        bills: { nats: { url: 'nats://one:4222', stream: 'BILLS', consumer: 'mail', prefix: 'b' } },
      }),
    )
    expect(found).toEqual([
      {
        rabbitmq: {
          amqp: rabbit,
          vhost: 'shop',
          queues: ['orders', 'invoices'],
          deadLetterQueues: ['errors'],
        },
      },
      {
        kafka: {
          brokers: ['one:9092', 'two:9092'],
          client: { tls: {}, sasl: SCRAM },
          sources: [
            { topic: 'paid', group: 'billing', deadLetterTopics: ['dead'] },
            { topic: 'sent', group: 'mail' },
          ],
        },
      },
      {
        nats: {
          servers: ['nats://one:4222'],
          sources: [
            { stream: 'MAILS', consumer: 'mail' },
            { stream: 'BILLS', consumer: 'mail', prefix: 'b' },
          ],
        },
      },
      { postgres: { url: 'postgres://redrive@db/other' } },
      { postgres: { url: 'postgres://redrive@db/redrive' } },
    ])
  })

  test('have the schema of the outbox, also in the database of the server', async () => {
    const url = 'postgres://redrive@db/other'
    const found = await brokersIn(
      await config({
        events: { postgres: { queue: 'events', schema: 'shop' } },
        others: { postgres: { url, queue: 'events', schema: 'billing' } },
      }),
    )
    expect(found.flatMap(({ postgres = [] }) => postgres)).toEqual([
      { url: 'postgres://redrive@db/redrive', outboxSchema: 'shop' },
      { url, outboxSchema: 'billing' },
      { url: 'postgres://redrive@db/redrive' },
    ])
  })

  test('are one for all queues of SQS in a region', async () => {
    const found = await brokersIn(
      await config({
        orders: { sqs: { queue: 'orders', region: 'eu-west-1' } },
        mails: { sqs: { queue: 'mails', region: 'eu-west-1', deadLetters: 'failed' } },
        others: { sqs: { queue: 'others', endpoint: 'http://localhost:9324' } },
      }),
    )
    expect(found.flatMap(({ sqs = [] }) => sqs)).toEqual([
      { queues: ['orders', 'mails'], region: 'eu-west-1', deadLetters: { mails: 'failed' } },
      { queues: ['others'], endpoint: 'http://localhost:9324', deadLetters: {} },
    ])
    expect(brokerAt('sqs://eu-west-1?queue=orders')).toEqual({
      sqs: { queues: ['orders'], region: 'eu-west-1' },
    })
    expect(brokerAt('sqs://localhost:9324?queue=a&queue=b')).toEqual({
      sqs: { queues: ['a', 'b'], region: 'us-east-1', endpoint: 'http://localhost:9324' },
    })
  })

  test('are one for all sources at an address of Redis', async () => {
    const url = 'redis://one:6379'
    const found = await brokersIn(
      await config({
        orders: { redis: { url, stream: 'orders', group: 'billing' } },
        mails: { bullmq: { url, queue: 'mails' } },
        events: { redisStore: { url: 'rediss://two:6379', prefix: 'events' } },
      }),
    )
    expect(found.flatMap(({ redis = [] }) => redis)).toEqual([
      { url: 'redis://one:6379' },
      { url: 'rediss://two:6379' },
    ])
    const ca = '-----BEGIN CERTIFICATE-----'
    expect(brokerAt('rediss://ada:hunter2@two:6379', { ca })).toEqual({
      redis: { url: 'rediss://ada:hunter2@two:6379', tls: { ca } },
    })
  })

  test('are separate when their credentials differ', async () => {
    const brokers = ['one:9092']
    const found = await brokersIn(
      await config({
        paid: { kafka: { brokers, topic: 'paid', group: 'billing', sasl: SCRAM } },
        sent: { kafka: { brokers, topic: 'sent', group: 'mail' } },
      }),
    )
    expect(found.filter(({ kafka }) => kafka !== undefined)).toHaveLength(2)
  })

  test('have the content of the files with certificates', async () => {
    const pem = '-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----\n'
    const ca = join(folder, 'ca.pem')
    writeFileSync(ca, pem)
    const kafka = { brokers: ['one:9092'], topic: 'paid', group: 'billing', tls: { ca } }
    const [first] = await brokersIn(await config({ paid: { kafka } }))
    expect(first?.kafka?.client).toEqual({ tls: { ca: pem } })
  })

  test('are read at the next address when the first one is unreachable', async () => {
    const [postgres, rabbitmq] = [await urlOf('postgres'), await urlOf('rabbitmq')]
    const url = ['amqp://guest:guest@127.0.0.1:9', rabbitmq]
    const path = file({ orders: { rabbitmq: { url, queue: 'orders' } } }, postgres)
    const { stdout } = await run(['doctor', '--config', path, '--json'])
    const { brokers } = JSON.parse(stdout) as {
      readonly brokers: readonly { readonly findings: readonly { readonly found: string }[] }[]
    }
    const found = brokers[0]?.findings.map((finding) => finding.found)
    expect(found).toEqual([
      'not readable: AMQP cannot read them, and no management API is configured',
    ])
  }, 120_000)
})

describe('an address', () => {
  test('of Kafka may contain credentials, topics and groups', () => {
    expect(
      brokerAt(
        'kafkas://ada:hunter2@one:9092?mechanism=scram-sha-512&topic=paid&group=billing&topic=sent&group=mail',
      ),
    ).toEqual({
      kafka: {
        brokers: ['one:9092'],
        client: { tls: {}, sasl: SCRAM },
        sources: [
          { topic: 'paid', group: 'billing' },
          { topic: 'sent', group: 'mail' },
        ],
      },
    })
    expect(brokerAt('kafka://ada:hunter2@one:9092')).toMatchObject({
      kafka: { client: { sasl: { mechanism: 'PLAIN' } } },
    })
  })

  test('of RabbitMQ may contain a virtual host and queues', () => {
    expect(brokerAt('http://ada:hunter2@one:15672/?vhost=/shop&queue=a&queue=b')).toEqual({
      rabbitmq: {
        management: 'http://ada:hunter2@one:15672',
        vhost: '/shop',
        queues: ['a', 'b'],
      },
    })
    const found =
      'nats://ada:hunter2@one:4222?monitor=http://one:8222&stream=ORDERS&consumer=billing'
    expect(brokerAt(found)).toEqual({
      nats: {
        servers: ['nats://ada:hunter2@one:4222'],
        monitors: ['http://one:8222'],
        sources: [{ stream: 'ORDERS', consumer: 'billing' }],
      },
    })
    expect(brokerAt('amqp://ada@one/shop')).toEqual({
      rabbitmq: { amqp: 'amqp://ada@one/shop', vhost: 'shop' },
    })
  })

  test.each(['kafka://ada:hunter2@one:9092?mechanism=GSSAPI', 'kafka://one:9092?topic=paid'])(
    'is rejected if it is invalid: %s',
    (address) => {
      expect(() => brokerAt(address)).toThrow(/^Expected /)
    },
  )
})
