import { deadLetter, giveBack, urlOf } from '@redrive/dev-support'
import { type Delivery, SETTLE } from '@redrive/core'
import { consume, onEvent } from '@redrive/runtime'
import { until } from '@redrive/testing'
import { Redis } from 'ioredis'
import { afterAll, expect, it, onTestFinished } from 'vitest'
import { redisStream, redisStreamSource } from '../src/index.ts'
import { networkTo } from './network.ts'
import { redisWorld } from './world.ts'

const url = await urlOf('redis')
const client = new Redis(url)
afterAll(() => client.disconnect())

const GROUP = 'billing'

function aWorld() {
  const world = redisWorld(client)
  onTestFinished(() => world.close())
  return world
}

it('reports a returned message that was trimmed before its next delivery', async () => {
  const world = aWorld()
  const { stream } = world
  const expired: number[] = []
  const stop = onEvent((event) => {
    if (event.type === 'messages_expired' && event.source === stream) expired.push(event.count)
  })
  onTestFinished(stop)
  const delivered: unknown[] = []
  const transport = redisStream({ client, stream, group: GROUP })
  const receiver = { deliver: (one: unknown) => void delivered.push(one), lost: () => undefined }
  await transport.open()
  transport.limit(2)
  transport.receive(receiver)
  for (const number of [1, 2]) await world.send({ bytes: Buffer.from(String(number)) })
  await until('both are delivered', () => delivered.length === 2)
  await transport.close()
  await client.xtrim(stream, 'MAXLEN', 0)
  const next = redisStream({ client, stream, group: GROUP })
  await next.open()
  next.limit(2)
  next.receive(receiver)
  await until('the loss is reported', () => expired.length > 0)
  expect(expired).toEqual([2])
  await next.close()
})

it('retries and dead-letters a message with thousands of fields, and stops no other', async () => {
  const world = aWorld()
  const { stream } = world
  const fields = Array.from({ length: 5_000 }, (_, i) => [`header-${i}`, `${i}`]).flat()
  await client.xadd(stream, '*', 'body', '1', 'raw', Buffer.from([0xff, 0]), ...fields)
  const seen: number[] = []
  const consumer = await consume(
    redisStream({ client, stream, group: GROUP }),
    ({ headers }) => {
      const { length } = Object.keys(headers)
      seen.push(length)
      if (length > 1_000) throw new TypeError('too many')
    },
    { logger: 'off', retry: { attempts: 2, maxInlineDelay: '0ms', unproven: 'off' } },
  )
  await until('it was tried twice', () => seen.length === 2)
  await world.send({ bytes: Buffer.from('2'), headers: {} })
  await until('the next message is handled', () => seen.includes(0))
  const plane = redisStreamSource({ client, stream, group: GROUP })
  await until('it is a dead letter', async () => (await plane.depth()) === 1)
  await consumer.stop()
  expect(seen.slice(0, 2)).toEqual([5_001, 5_001])
  const [dead] = (await plane.drain({ limit: 1 })).deadLetters
  const { raw, ...headers } = dead?.delivery.headers ?? {}
  expect(raw).toEqual(Buffer.from([0xff, 0]))
  expect(Object.entries(headers).flat()).toEqual(fields)
  await plane.close()
})

it('counts no crash when the client sends a claim again', async () => {
  const world = aWorld()
  const { stream } = world
  const network = await networkTo(url)
  const counts: number[] = []
  const transport = redisStream({ client: network.client, stream, group: GROUP })
  await transport.open()
  transport.limit(10)
  network.lostResponse = 'twice'
  await world.send({ bytes: Buffer.from('twice') })
  transport.receive({
    deliver(delivery) {
      counts.push(delivery.deliveryCount)
      void transport.enact(delivery, { kind: 'settle', reason: 'handled' })
    },
    lost: () => undefined,
  })
  await until('it is delivered', () => counts.length === 1)
  expect(counts).toEqual([1])
  expect(network.lostResponse).toBeUndefined()
  await until('it is settled', async () => (await world.backlog()) === 0)
  await transport.close()
})

it.each([
  { ...SETTLE, drop: 'dropEnd' },
  { ...giveBack, drop: 'dropEnd' },
  { ...deadLetter(), drop: 'dropResponse' },
] as const)('reports a repeated decision as done: $kind', async ({ drop, ...decision }) => {
  const world = aWorld()
  const transport = world.transport()
  const { promise, resolve } = Promise.withResolvers<Delivery>()
  await transport.open()
  transport.limit(1)
  await transport.receive({ deliver: resolve, lost: () => undefined })
  await world.send({ bytes: Buffer.from('1') })
  const delivery = await promise
  transport.limit(0)
  await world[drop]?.(transport)
  const first = await transport.enact(delivery, decision)
  expect(first.kind).toBe('unknown')
  const second = await transport.enact(delivery, decision)
  expect(second.kind).toBe('done')
  await transport.close({ drainMs: 0 })
})
