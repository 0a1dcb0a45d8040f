import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { business } from '@redrive/core'
import { MemoryBroker, memory, memorySource, send } from '@redrive/memory'
import { FakeClock, until } from '@redrive/testing'
import { expect, it, onTestFinished } from 'vitest'
import {
  consume,
  consumerSet,
  type Handler,
  type HealthOptions,
  healthHandler,
} from '../src/index.ts'
import { PLAIN, unreachable } from './fixtures.ts'

const POISON = new TypeError('cannot read')

/** A consumer of `orders` on a fake clock, and a server with its health routes. */
async function service(handler: Handler, given: HealthOptions = {}) {
  const clock = new FakeClock()
  const broker = new MemoryBroker({ clock })
  const orders = { broker, queue: 'orders' }
  const policy = { ...PLAIN, classify: [business(TypeError)], logger: 'off' as const, clock }
  const consumers = consumerSet({
    orders: () => consume(memory(orders), handler, { ...policy, breaker: {} }),
  })
  const source = memorySource(orders)
  const deadLetters = { orders: () => source.depth() }
  const handle = healthHandler(consumers, { deadLetters, clock, ...given })
  const server = createServer((request, response) => handle(request, response))
  server.listen(0, '127.0.0.1')
  await until('the server listens', () => server.listening)
  onTestFinished(async () => {
    server.close()
    await consumers.stop({ drain: 0 })
  })
  const { port } = server.address() as AddressInfo
  const request = (path: string, method = 'GET') =>
    fetch(`http://127.0.0.1:${port}${path}`, { method })
  return {
    clock,
    consumers,
    request,
    send: async (...bodies: readonly unknown[]) => {
      for (const body of bodies) send(broker, 'orders', body)
      await clock.settle()
    },
    read: async (path: string) => {
      const response = await request(path)
      return [response.status, await response.json()] as const
    },
  }
}

const rejectBad: Handler = ({ body }) => {
  if (body === 'bad') throw POISON
}

it('reports breaker, dead letters, the last message and the failure rate of an up consumer', async () => {
  const { clock, consumers, read, send } = await service(rejectBad)
  await consumers.start()
  await send('good', 'good', 'good', 'bad')
  expect(await read('/healthz/consumer')).toEqual([
    200,
    {
      status: 'up',
      consumers: {
        orders: {
          status: 'up',
          reasons: [],
          breaker: { dependency: 'orders', phase: 'closed' },
          deadLetters: 1,
          lastHandledAt: new Date(clock.now()).toISOString(),
          failureRate: 0.25,
        },
      },
    },
  ])
})

it('is degraded and 503 while too many runs fail, and up again five minutes later', async () => {
  const { clock, consumers, read, send } = await service(rejectBad, { maxDeadLetters: 1_000 })
  await consumers.start()
  await send(...Array<string>(6).fill('bad'), ...Array<string>(4).fill('good'))
  expect(await read('/healthz/consumer')).toMatchObject([
    503,
    { status: 'degraded', consumers: { orders: { reasons: ['6 of its last 10 runs failed.'] } } },
  ])
  expect((await read('/healthz/ready'))[0]).toBe(200)
  await clock.advance('5m')
  await read('/healthz/consumer')
  await clock.advance('5m')
  expect(await read('/healthz/consumer')).toMatchObject([
    200,
    { consumers: { orders: { failureRate: null } } },
  ])
})

it('is degraded with more dead letters than the limit, and counts them once in ten seconds', async () => {
  let counted = 0
  const deadLetters = { orders: () => (counted += 101) }
  const { clock, consumers, read } = await service(rejectBad, { deadLetters })
  await consumers.start()
  const reasons = ['It has 101 dead letters, more than 100.']
  const expected = [
    503,
    { status: 'degraded', consumers: { orders: { reasons, deadLetters: 101 } } },
  ]
  expect(await read('/healthz/consumer')).toMatchObject(expected)
  expect(await read('/healthz/consumer')).toMatchObject(expected)
  await clock.advance('10s')
  expect(await read('/healthz/consumer')).toMatchObject([
    503,
    { consumers: { orders: { deadLetters: 202 } } },
  ])
})

it('is degraded when the dead letters cannot be counted, without a password', async () => {
  const deadLetters = {
    orders: () => Promise.reject(new Error('connect to amqp://guest:hunter2@rabbit failed')),
  }
  const { consumers, read } = await service(rejectBad, { deadLetters })
  await consumers.start()
  const [status, body] = await read('/healthz/consumer')
  expect([status, body]).toMatchObject([
    503,
    { consumers: { orders: { status: 'degraded', deadLetters: null } } },
  ])
  expect(JSON.stringify(body)).toContain('Its dead letters cannot be counted: Error: connect to')
  expect(JSON.stringify(body)).not.toContain('hunter2')
})

it('responds when the count of dead letters does not end', async () => {
  const deadLetters = { orders: () => new Promise<number>(() => undefined) }
  const { clock, consumers, read } = await service(rejectBad, { deadLetters })
  await consumers.start()
  const reading = read('/healthz/consumer')
  await until('the count has a timeout', () => clock.pending > 0)
  await clock.advance('2s')
  expect(await reading).toMatchObject([
    503,
    {
      consumers: {
        orders: { reasons: ['Its dead letters cannot be counted: no result within 2 s.'] },
      },
    },
  ])
})

it('is down while the breaker is open, and live', async () => {
  const { consumers, read, send } = await service(
    () => {
      throw unreachable()
    },
    { ready: 'consuming' },
  )
  await consumers.start()
  consumers.running.get('orders')?.dependency.isolate()
  await send('any')
  expect(await read('/healthz/consumer')).toMatchObject([
    503,
    {
      status: 'down',
      consumers: {
        orders: { reasons: ['"orders" is isolated.'], breaker: { phase: 'isolated' } },
      },
    },
  ])
  expect((await read('/healthz/ready'))[0]).toBe(503)
  expect(await read('/healthz/live')).toEqual([200, { status: 'up' }])
})

it('is ready with a message whose cause is not known, and not ready while it is down', async () => {
  const { consumers, read } = await service(rejectBad)
  await consumers.start()
  const consumer = consumers.running.get('orders')
  const health = consumer?.health.bind(consumer)
  Object.assign(consumer ?? {}, { health: () => ({ ...health?.(), status: 'degraded' }) })
  expect((await read('/healthz/ready'))[0]).toBe(200)
  Object.assign(consumer ?? {}, { health })
  consumer?.pause()
  expect((await read('/healthz/ready'))[0]).toBe(503)
})

it.each([
  // ready, before the start, up, degraded, down, after the stop
  ['up', [503, 200, 503, 503, 503]],
  ['consuming', [503, 200, 200, 503, 503]],
  ['started', [503, 200, 200, 200, 503]],
] as const)('ready: %s', async (ready, expected) => {
  const { consumers, read } = await service(rejectBad, { ready })
  const seen: number[] = []
  const look = async () => seen.push((await read('/healthz/ready'))[0])
  await look()
  await consumers.start()
  await look()
  const consumer = consumers.running.get('orders')
  const health = consumer?.health.bind(consumer)
  Object.assign(consumer ?? {}, { health: () => ({ ...health?.(), status: 'degraded' }) })
  await look()
  Object.assign(consumer ?? {}, { health })
  consumer?.pause()
  await look()
  await consumers.stop({ drain: 0 })
  await look()
  expect(seen).toEqual(expected)
})

it('responds only to GET and HEAD of its paths, and is not cached', async () => {
  const { consumers, request } = await service(rejectBad, { path: '/internal' })
  await consumers.start()
  const found = await request('/internal/consumer?pretty', 'HEAD')
  expect([found.status, found.headers.get('cache-control'), await found.text()]).toEqual([
    200,
    'no-store',
    '',
  ])
  expect((await request('/internal/consumer', 'POST')).status).toBe(405)
  expect((await request('/healthz/consumer')).status).toBe(404)
})

it('rejects invalid options with all problems', () => {
  const given = { path: 'health', ready: 'yes', maxFailureRate: 2, deadletters: {} }
  expect(() => healthHandler(consumerSet({}), given as never)).toThrow(
    [
      'The options of healthHandler() are invalid:',
      "- path: expected a path such as '/healthz', got 'health'",
      "- ready: expected 'up' or 'consuming' or 'started', got 'yes'",
      '- maxFailureRate: expected a number from 0 to 1, got 2',
      '- deadletters: unknown option; known options: clock, deadLetters, maxDeadLetters, maxFailureRate, path, ready',
    ].join('\n'),
  )
})
