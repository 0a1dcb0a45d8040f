import { randomUUID } from 'node:crypto'
import { createClient } from '@redis/client'
import { urlOf } from '@redrive/dev-support'
import { consume, onEvent } from '@redrive/runtime'
import { until } from '@redrive/testing'
import { Redis } from 'ioredis'
import { afterAll, describe, expect, it, onTestFinished } from 'vitest'
import { redisStream, redisStreamSink, redisStreamSource, topologyOf } from '../src/index.ts'
import { redisWorld } from './world.ts'

const url = await urlOf('redis')
const client = new Redis(url)
afterAll(() => client.disconnect())

const GROUP = 'billing'
const BINARY = ['content-type', 'application/octet-stream', 'tenant', 'a']
const QUIET = { logger: 'off' } as const

function aWorld() {
  const world = redisWorld(client)
  onTestFinished(() => world.close())
  return world
}

describe('an existing stream', () => {
  it('delivers its waiting entries, and keeps them for other groups', async () => {
    const world = aWorld()
    const { stream } = world
    await client.xgroup('CREATE', stream, 'reports', '0', 'MKSTREAM')
    await client.xadd(stream, '*', 'order', '7', 'total', '12.50', 'type', 'order.placed')
    await client.xadd(stream, '*', 'body', Buffer.from([0xff, 0]), ...BINARY)
    const seen: unknown[] = []
    const consumer = await consume(
      world.transport(),
      ({ body, headers, type }) => void seen.push({ body, headers: { ...headers }, type }),
      QUIET,
    )
    await until('both are handled', () => seen.length === 2)
    await consumer.stop()
    expect(seen).toEqual([
      {
        body: { order: '7', total: '12.50', type: 'order.placed' },
        headers: {},
        type: 'order.placed',
      },
      {
        body: expect.objectContaining({ 0: 0xff, 1: 0 }) as unknown,
        headers: { tenant: 'a' },
        type: undefined,
      },
    ])
    expect(await client.xlen(stream)).toBe(2)
    const pending = await client.xpending(stream, GROUP)
    expect(pending[0]).toBe(0)
  })

  it('takes over entries that a consumer of another library did not acknowledge', async () => {
    const world = aWorld()
    const { stream } = world
    await client.xgroup('CREATE', stream, GROUP, '0', 'MKSTREAM')
    await world.send({ bytes: Buffer.from('"left"') })
    await client.xreadgroup('GROUP', GROUP, 'worker-1', 'COUNT', 1, 'STREAMS', stream, '>')
    const seen: unknown[] = []
    const consumer = await consume(
      world.transport(undefined, { lease: '1s' }),
      ({ body }) => void seen.push(body),
      QUIET,
    )
    await until('it is handled', () => seen.length > 0)
    await consumer.stop()
    expect(seen).toHaveLength(1)
  })
})

describe('an entry that is trimmed while its handler runs', () => {
  /** A consumer whose handler fails after its entry was trimmed. */
  async function aTrimmedEntry() {
    const world = aWorld()
    const id = await world.send({ bytes: Buffer.from('{"order":7}') })
    const started = Promise.withResolvers<void>()
    const trimmed = Promise.withResolvers<void>()
    const consumer = await consume(
      world.transport(undefined, { lease: '1s' }),
      async () => {
        started.resolve()
        await trimmed.promise
        throw new TypeError('order 7 has no customer')
      },
      { ...QUIET, retry: { attempts: 1 }, timeout: '1m' },
    )
    await started.promise
    await client.xtrim(world.stream, 'MAXLEN', 0)
    return { world, id, consumer, end: () => trimmed.resolve() }
  }

  it('becomes a dead letter with its bytes', async () => {
    const { world, id, consumer, end } = await aTrimmedEntry()
    end()
    const plane = world.source()
    await until('it is a dead letter', async () => (await plane.depth()) === 1)
    await consumer.stop()
    const [dead] = (await plane.drain({ limit: 10 })).deadLetters
    expect(dead?.delivery.id).toBe(id)
    expect(Buffer.from(dead?.delivery.bytes ?? []).toString()).toBe('{"order":7}')
    await plane.close()
  })

  it('is returned as a copy when the consumer stops', async () => {
    const { world, id, consumer, end } = await aTrimmedEntry()
    await consumer.stop({ drain: '10ms' })
    const [entry] = await client.xrange(topologyOf(world.stream, GROUP).own, '-', '+')
    expect(entry?.[1]).toEqual(expect.arrayContaining(['redrive-id', id, '{"order":7}']))
    end()
  })
})

it('keeps the bytes of a message with the client of @redis/client', async () => {
  const world = aWorld()
  const { stream } = world
  const nodeRedis = createClient({ url })
  await nodeRedis.connect()
  onTestFinished(() => nodeRedis.close())
  const options = { client: nodeRedis, stream, group: GROUP }
  const bytes = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte))
  const event = { id: 'e-1', key: 'order-1', type: 'order.placed', lane: undefined, at: 0, bytes }
  const sink = redisStreamSink({ client: nodeRedis, stream })
  const { signal } = new AbortController()
  await sink.healthCheck()
  await sink.send(
    [{ ...event, contentType: 'application/octet-stream', headers: { tenant: 'a' } }],
    {
      signal,
    },
  )
  const consumer = await consume(
    redisStream(options),
    () => {
      throw new TypeError('cannot read the order')
    },
    { ...QUIET, retry: { attempts: 1 } },
  )
  const plane = redisStreamSource(options)
  await until('it is a dead letter', async () => (await plane.depth()) === 1)
  await consumer.stop()
  const batch = await plane.drain({ limit: 10 })
  expect(batch.deadLetters[0]?.delivery).toMatchObject({
    id: 'e-1',
    key: 'order-1',
    type: 'order.placed',
    headers: { tenant: 'a' },
  })
  expect(Buffer.compare(Buffer.from(batch.deadLetters[0]?.delivery.bytes ?? []), bytes)).toBe(0)
  await batch.release()
  expect(await plane.depth()).toBe(0)
  await plane.putBack(batch.deadLetters)
  const again = await plane.drain({ limit: 10 })
  expect(again.deadLetters[0]?.delivery).toEqual(batch.deadLetters[0]?.delivery)
  await plane.close()
})

it('returns messages whose claim had no response, and does not count that as a crash', async () => {
  const world = aWorld()
  for (const number of [1, 2]) await world.send({ bytes: Buffer.from(String(number)) })
  const transport = world.transport()
  world.dropClaim(transport)
  const counts: number[] = []
  await transport.open()
  transport.limit(10)
  void transport.receive({
    deliver(delivery) {
      counts.push(delivery.deliveryCount)
      void transport.enact(delivery, { kind: 'settle', reason: 'handled' })
    },
    lost: () => undefined,
  })
  await until('both are delivered', () => counts.length === 2)
  expect(counts).toEqual([1, 1])
  await until('both are settled', async () => (await world.backlog()) === 0)
  await transport.close({ drainMs: 0 })
})

it('creates a removed group again from the first entry, and reports it', async () => {
  const world = aWorld()
  const { stream } = world
  const seen: unknown[] = []
  const recreated: string[] = []
  const stop = onEvent((event) => {
    if (event.type === 'topic_recreated' && event.source === stream) recreated.push(event.where)
  })
  onTestFinished(stop)
  const consumer = await consume(world.transport(), ({ body }) => void seen.push(body), QUIET)
  await client.del(stream)
  await world.send({ bytes: Buffer.from('1') })
  await until('it is handled', () => seen.length > 0)
  await consumer.stop()
  expect(recreated).toEqual([stream])
})

it('removes its consumer from the group when it stops', async () => {
  const world = aWorld()
  const { stream } = world
  const seen: unknown[] = []
  const consumer = await consume(world.transport(), ({ body }) => void seen.push(body), QUIET)
  await world.send({ bytes: Buffer.from('1') })
  await until('it is handled', () => seen.length > 0)
  await consumer.stop()
  expect(await client.xinfo('CONSUMERS', stream, GROUP)).toEqual([])
})

it('rejects a key that is not a stream, with the remedy', async () => {
  const stream = `orders-${randomUUID()}`
  await client.set(stream, 'text')
  onTestFinished(async () => void (await client.del(stream)))
  await expect(redisStream({ client, stream, group: GROUP }).open()).rejects.toMatchObject({
    code: 'TOPOLOGY_MISMATCH',
    message: expect.stringContaining('is not a stream. Use another stream') as unknown,
  })
})

it('sets aside a dead letter with a field that is not text', async () => {
  const world = aWorld()
  const { stream } = world
  await client.xadd(stream, '*', 'body', '1', 'raw', Buffer.from([0xff]))
  const fail = () => {
    throw new TypeError('no')
  }
  const consumer = await consume(world.transport(), fail, { ...QUIET, retry: { attempts: 1 } })
  const plane = world.source()
  await until('it is a dead letter', async () => (await plane.depth()) === 1)
  await consumer.stop()
  const { deadLetters } = await plane.drain({ limit: 1 })
  expect(deadLetters[0]?.problem?.code).toBe('headers_not_publishable')
  await plane.close()
})

it('lists every problem of its options', () => {
  const options = { client: {}, stream: 'a{b', group: '', lease: '10ms' }
  expect(() => redisStream(options as never)).toThrow(
    expect.objectContaining({
      problems: expect.arrayContaining([expect.stringMatching(/^stream:/)]) as unknown,
    }),
  )
})
