import { randomUUID } from 'node:crypto'
import { Admin, Producer, stringSerializers } from '@platformatic/kafka'
import { dropDatabase, emptyDatabase, ignoreConnectionErrors, urlOf } from '@redrive/dev-support'
import { migrate } from '@redrive/postgres'
import type { DeadLetterSource } from '@redrive/runtime'
import { until } from '@redrive/testing'
import { type Channel, type ChannelModel, connect, type GetMessage } from 'amqplib'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { peek } from '../src/commands/peek.ts'
import type { Io } from '../src/io.ts'
import { runChild } from './child.ts'

interface PeekJson {
  readonly total: number
  readonly looked: number
  readonly groups: readonly {
    readonly signature: string
    readonly count: number
    readonly message: string
  }[]
  readonly messages: readonly { readonly id: string; readonly key: string }[]
}

const json = (text: string) => JSON.parse(text) as PeekJson

const failed = (index: number) => ({
  'x-death': [
    {
      queue: 'orders',
      reason: 'rejected',
      count: 1,
      exchange: '',
      'routing-keys': ['orders'],
      time: { '!': 'timestamp', value: 1_700_000_000 },
    },
  ],
  'x-exception-message':
    index % 3 === 0 ? `no such customer ${index}` : `connect ECONNREFUSED 10.0.0.${index}:443`,
})

describe('RabbitMQ', () => {
  let url: string
  let model: ChannelModel
  let channel: Channel
  const queues: string[] = []

  beforeAll(async () => {
    url = await urlOf('rabbitmq')
    model = await connect(url)
    channel = await model.createChannel()
  }, 120_000)
  afterAll(async () => {
    for (const queue of queues) await channel.deleteQueue(queue)
    await model.close()
  })

  async function filled(type: 'classic' | 'quorum', count: number): Promise<string> {
    const queue = `cli-peek-${type}-${randomUUID()}`
    queues.push(queue)
    await channel.assertQueue(queue, { durable: true, arguments: { 'x-queue-type': type } })
    for (let index = 0; index < count; index += 1) {
      const messageId = `m-${index}`
      channel.sendToQueue(queue, Buffer.from([index, 0, 255, 27]), {
        messageId,
        headers: failed(index),
        persistent: true,
      })
    }
    await ready(queue, count)
    return queue
  }

  const ready = (queue: string, count: number) =>
    until(
      `${count} in ${queue}`,
      async () => (await channel.checkQueue(queue)).messageCount === count,
    )

  /** Removes and returns all messages, in order. */
  async function emptied(queue: string): Promise<readonly GetMessage[]> {
    const all: GetMessage[] = []
    for (let one = await channel.get(queue); one !== false; one = await channel.get(queue)) {
      channel.ack(one)
      all.push(one)
    }
    return all
  }

  const ids = (count: number) => Array.from({ length: count }, (_, index) => `m-${index}`)

  test.each(['classic', 'quorum'] as const)(
    'keeps count, order and bytes of a %s queue',
    async (type) => {
      const queue = await filled(type, 30)
      const all = await runChild(['peek', url, queue, '--json'])
      expect(all).toMatchObject({ code: 0, stderr: '' })
      const { total, looked, groups, messages } = json(all.stdout)
      expect([total, looked]).toEqual([30, 30])
      expect(groups.map(({ count }) => count)).toEqual([20, 10])
      expect(messages.map(({ id }) => id)).toEqual(ids(30))
      await ready(queue, 30)
      const one = await runChild(['peek', url, queue, '--show', '3', '--json'])
      const third = { id: 'm-2', encoding: 'base64', body: 'AgD/Gw==' }
      expect(JSON.parse(one.stdout)).toMatchObject(third)
      await ready(queue, 30)
      const left = await emptied(queue)
      expect(left.map(({ content }) => [...content])).toEqual(
        ids(30).map((_, index) => [index, 0, 255, 27]),
      )
      expect(left.map(({ properties }) => properties.messageId as string)).toEqual(ids(30))
    },
  )

  test('reads a part of a classic queue and keeps its order, but rejects a part of a quorum queue', async () => {
    const classic = await filled('classic', 9)
    expect(
      json((await runChild(['peek', url, classic, '--limit', '4', '--json'])).stdout),
    ).toMatchObject({ total: 9, looked: 4 })
    await ready(classic, 9)
    expect(
      (await emptied(classic)).map(({ properties }) => properties.messageId as string),
    ).toEqual(ids(9))
    const quorum = await filled('quorum', 9)
    const { code, stderr } = await runChild(['peek', url, quorum, '--limit', '4'])
    expect(code).toBe(5)
    expect(stderr).toContain('--limit 9')
    const left = await emptied(quorum)
    expect(left.map(({ properties }) => properties.messageId as string)).toEqual(ids(9))
    expect(left.map(({ fields }) => fields.redelivered)).toEqual(ids(9).map(() => false))
  })

  test('prints tables for people, and what a peek changes at the broker', async () => {
    const queue = await filled('quorum', 3)
    const { code, stdout, stderr } = await runChild(['peek', url, queue])
    expect(code).toBe(0)
    expect(stdout).toMatch(/^SIGNATURE +CLASS +COUNT/)
    expect(stderr).toContain('Read 3 of 3')
    expect(stderr).toContain('counts each peek')
  })

  test('does not read messages that were returned often, unless --ignore-delivery-limit is set', async () => {
    const queue = await filled('quorum', 2)
    for (let crash = 1; crash <= 20; crash += 1) {
      const other = await connect(url)
      other.on('error', () => undefined)
      const taking = await other.createChannel()
      await taking.prefetch(1)
      const { promise: taken, resolve } = Promise.withResolvers<void>()
      await taking.consume(queue, () => resolve())
      await taken
      // Without closing the connection, as a process that crashes.
      ;(other.connection as unknown as { stream: { destroy(): void } }).stream.destroy()
      await ready(queue, 2)
    }
    const { code, stderr } = await runChild(['peek', url, queue])
    expect(code).toBe(5)
    expect(stderr).toMatch(/returned \d+ times/)
    await ready(queue, 2)
    expect((await runChild(['peek', url, queue, '--ignore-delivery-limit'])).code).toBe(0)
    await ready(queue, 2)
    expect(
      (await emptied(queue)).map(({ properties }) => properties.messageId as string).sort(),
    ).toEqual(['m-0', 'm-1'])
  })

  test('shows no id and no key for messages without one, because these would change in each peek', async () => {
    const queue = await filled('classic', 1)
    channel.sendToQueue(queue, Buffer.from('a'), { headers: failed(1) })
    channel.sendToQueue(queue, Buffer.from('b'), { headers: { 'redrive-key': 'order-1' } })
    await ready(queue, 3)
    const messages = async () =>
      json((await runChild(['peek', url, queue, '--json'])).stdout).messages.map(({ id, key }) => [
        id,
        key,
      ])
    const seen = [
      ['m-0', 'm-0'],
      [undefined, undefined],
      [undefined, 'order-1'],
    ]
    expect(await messages()).toEqual(seen)
    await ready(queue, 3)
    const { stdout } = await runChild(['peek', url, queue, '--show', '2'])
    expect(stdout).not.toMatch(/^(Id|Key)\b/m)
    await ready(queue, 3)
    expect(await messages()).toEqual(seen)
  })

  test('reports an empty queue', async () => {
    const queue = await filled('classic', 0)
    const { code, stdout } = await runChild(['peek', url, queue])
    expect({ code, stdout }).toEqual({ code: 0, stdout: 'The queue is empty.\n' })
  })

  test('reports a queue that does not exist, and does not create it', async () => {
    const queue = `cli-peek-none-${randomUUID()}`
    const { code, stdout, stderr } = await runChild(['peek', url, queue])
    const vhost = decodeURIComponent(new URL(url).pathname.slice(1)) || '/'
    const message = `Error: Queue "${queue}" does not exist in virtual host "${vhost}". Check the name and the address.\n`
    expect({ code, stdout, stderr }).toEqual({ code: 3, stdout: '', stderr: message })
    const probe = await model.createChannel()
    probe.on('error', () => undefined)
    await expect(probe.checkQueue(queue)).rejects.toThrow('NOT_FOUND')
  })
})

describe('Kafka', () => {
  let brokers: string
  let admin: Admin
  const topic = `cli-peek-${randomUUID()}`
  beforeAll(async () => {
    brokers = await urlOf('kafka')
    admin = new Admin({ clientId: 'cli-test', bootstrapBrokers: [brokers] })
    await admin.createTopics({ topics: [topic], partitions: 2, replicas: 1 })
    // A topic exists only shortly after the response to its creation.
    await until('the topic', async () => (await admin.listTopics()).includes(topic))
    const producer = new Producer({
      clientId: 'cli-test',
      bootstrapBrokers: [brokers],
      serializers: stringSerializers,
    })
    const messages = Array.from({ length: 12 }, (_, index) => ({
      topic,
      partition: index % 2,
      key: `k-${index}`,
      value: `value ${index}`,
      headers: {
        'kafka_dlt-exception-message': `customer ${index} is gone`,
        'kafka_dlt-exception-fqcn': 'com.acme.Gone',
      },
    }))
    // One by one: a request for two partitions is repeated for both when one of them has no leader yet.
    for (const message of messages) await producer.send({ messages: [message] })
    await producer.close()
  }, 120_000)
  afterAll(async () => {
    await admin.deleteTopics({ topics: [topic] })
    await admin.close()
  })

  /** Returns only our groups, because other tests use the same brokers. */
  const groupNames = async () =>
    [...(await admin.listGroups()).keys()].filter((name) => name.includes(topic))

  test('does not change a topic and deletes its consumer group', async () => {
    const { code, stdout, stderr } = await runChild(['peek', `kafka://${brokers}`, topic, '--json'])
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    const { total, looked, groups, messages } = json(stdout)
    expect([total, looked]).toEqual([12, 12])
    expect(groups.map(({ count }) => count)).toEqual([12])
    expect(new Set(messages.map(({ id }) => id)).size).toBe(12)
    expect(await groupNames()).toEqual([])
    const [shown] = [await runChild(['peek', `kafka://${brokers}`, topic, '--show', '1', '--json'])]
    expect(JSON.parse(shown.stdout)).toMatchObject({
      encoding: 'utf8',
      body: expect.stringMatching(/^value \d+$/) as string,
    })
    // A second peek finds all messages again.
    expect(
      json((await runChild(['peek', `kafka://${brokers}`, topic, '--json'])).stdout).looked,
    ).toBe(12)
  }, 120_000)

  test('reports a topic that does not exist, and does not create it', async () => {
    const none = `cli-peek-none-${randomUUID()}`
    const { code, stdout, stderr } = await runChild(['peek', `kafka://${brokers}`, none])
    expect({ code, stdout }).toEqual({ code: 3, stdout: '' })
    expect(stderr).toContain(`Topic "${none}" does not exist`)
    expect(await admin.listTopics()).not.toContain(none)
  }, 120_000)
})

describe('PostgreSQL', () => {
  let url: string
  let pool: pg.Pool
  const name = `redrive_cli_peek_${randomUUID().slice(0, 8)}`
  beforeAll(async () => {
    url = await emptyDatabase(name)
    pool = ignoreConnectionErrors(new pg.Pool({ connectionString: url, max: 4 }))
    await migrate(pool)
    await pool.query(`insert into redrive.outbox (queue, status, due_at, failed_at, reason, key, payload, attempts)
      select 'orders', 'failed', null, now() - make_interval(secs => 100 - n), 'customer ' || n || ' is gone', 'k-' || n, decode('00ff1b', 'hex'), 3
      from generate_series(1, 25) n`)
  }, 120_000)
  afterAll(async () => {
    await pool.end()
    await dropDatabase(url)
  })

  const everything = async () =>
    (await pool.query('select xmin, ctid, o.* from redrive.outbox o order by position'))
      .rows as unknown[]

  test('does not change any row', async () => {
    const before = await everything()
    const { code, stdout, stderr } = await runChild([
      'peek',
      url,
      'orders',
      '--json',
      '--limit',
      '20',
    ])
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    const { total, looked, messages, groups } = json(stdout)
    expect([total, looked]).toEqual([25, 20])
    expect(groups.map(({ count }) => count)).toEqual([20])
    expect(messages.map(({ key }) => key).sort()).toEqual(
      Array.from({ length: 20 }, (_, at) => `k-${at + 1}`).sort(),
    )
    expect(await everything()).toEqual(before)
  })

  test('reads the outbox in the schema of the address', async () => {
    await migrate(pool, { schema: 'order' })
    await pool.query(`insert into "order".outbox (queue, status, due_at, failed_at, reason, key, payload, attempts)
      values ('orders', 'failed', null, now(), 'gone', 'other', '', 1)`)
    const { code, stdout } = await runChild(['peek', `${url}?schema=order`, 'orders', '--json'])
    expect(code).toBe(0)
    expect(json(stdout).messages.map(({ key }) => key)).toEqual(['other'])
  })
})

test('prints the messages and a warning when the clean-up fails', async () => {
  const written = { stdout: '', stderr: '' }
  const output = (name: keyof typeof written) => ({
    write: (text: string) => void (written[name] += text),
    isTTY: false,
    columns: 100,
    hasColor: false,
  })
  const io = { stdout: output('stdout'), stderr: output('stderr'), now: () => 0 } as unknown as Io
  const nothing = { deadLetters: [], release: async () => {}, abandon: async () => {} }
  const source = { depth: async () => 0, drain: async () => nothing } as unknown as DeadLetterSource
  const close = () => Promise.reject(new Error('Not allowed to delete the group g.'))
  const open = () => Promise.resolve({ source, trace: undefined, close })
  expect(await peek(io, open, { address: 'x', queue: 'q' }, { limit: 5 })).toBe(0)
  expect(written.stdout).toBe('The queue is empty.\n')
  expect(written.stderr).toContain('Warning: ')
  expect(written.stderr).toContain('Not allowed to delete the group g.')
})

test('reports a broker or database that cannot be reached', async () => {
  // localhost has two addresses and both refuse: the combined error has no message.
  for (const address of ['amqp://localhost:1', 'postgres://u@localhost:1/db']) {
    const { code, stdout, stderr } = await runChild(['peek', address, 'q'])
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).toMatch(/^Error: connect ECONNREFUSED .+:1\. Check the address/)
  }
})

test('rejects an address that is not a broker', async () => {
  expect((await runChild(['peek', 'http://example.com', 'q'])).code).toBe(2)
})
