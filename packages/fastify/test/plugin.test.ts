import { MemoryBroker, memory, send } from '@redrive/memory'
import { type Consumer, consume, type Handler } from '@redrive/runtime'
import { until } from '@redrive/testing'
import fastify, { type FastifyInstance } from 'fastify'
import { describe, expect, it, onTestFinished } from 'vitest'
import { redrive, type RedriveFastifyOptions } from '../src/index.ts'

const starter =
  (broker: MemoryBroker, handler: Handler = () => undefined, queue = 'orders') =>
  (): Promise<Consumer> =>
    consume(memory({ broker, queue }), handler, { logger: 'off' })

async function appWith(options: RedriveFastifyOptions): Promise<FastifyInstance> {
  const app = fastify()
  onTestFinished(() => app.close())
  await app.register(redrive, options)
  return app
}

const get = async (app: FastifyInstance, url: string) => {
  const { statusCode, body } = await app.inject({ url })
  return { status: statusCode, body: JSON.parse(body) as unknown }
}

describe('the life cycle', () => {
  it('starts the consumers when the app becomes ready, and not before', async () => {
    const broker = new MemoryBroker()
    const handled: unknown[] = []
    const app = await appWith({ consumers: { orders: starter(broker, (m) => handled.push(m.id)) } })
    send(broker, 'orders', {}, { id: 'a' })
    expect(app.redrive.running.size).toBe(0)
    await app.ready()
    await until('it is handled', () => handled.length === 1)
    expect(app.redrive.running.get('orders')?.source).toBe('orders')
  })

  it('rejects ready and listen with the error of a consumer that does not start', async () => {
    const app = await appWith({
      consumers: { orders: () => Promise.reject(new Error('the queue "orders" is missing')) },
    })
    await expect(app.ready()).rejects.toThrow('the queue "orders" is missing')
  })

  it('waits for running handlers before it closes the connections of other plugins', async () => {
    const broker = new MemoryBroker()
    const order: string[] = []
    let finish = (): void => undefined
    const handler = async () => {
      order.push('handler began')
      await new Promise<void>((resolve) => {
        finish = resolve
      })
      order.push('handler ended')
    }
    const app = fastify()
    // Registered later than the plugin: Fastify runs such a hook first.
    await app.register(redrive, { consumers: { orders: starter(broker, handler) } })
    app.addHook('onClose', async () => void order.push('database closed'))
    await app.ready()
    send(broker, 'orders', {})
    await until('the handler runs', () => order.length === 1)
    const closed = app.close()
    await until('the consumer is stopping', () => app.redrive.health().status === 'down')
    finish()
    await closed
    expect(order).toEqual(['handler began', 'handler ended', 'database closed'])
    expect(broker.depth('orders')).toBe(0)
  })

  it('returns the message of a handler that does not end within the drain', async () => {
    const broker = new MemoryBroker()
    let signal: AbortSignal | undefined
    const hang: Handler = (_, context) => {
      signal = context.signal
      return new Promise(() => undefined)
    }
    const app = await appWith({ drain: '50ms', consumers: { orders: starter(broker, hang) } })
    await app.ready()
    send(broker, 'orders', {}, { id: 'a' })
    await until('the handler runs', () => signal !== undefined)
    await app.close()
    expect(signal?.aborted).toBe(true)
    expect(broker.contents('orders')).toMatchObject([{ id: 'a' }])
  })

  it('passes the app to the functions, with what other plugins added', async () => {
    const broker = new MemoryBroker()
    const seen: unknown[] = []
    const app = fastify()
    app.decorate('database', 'the pool')
    await app.register(redrive, {
      consumers: {
        orders: (given) => {
          seen.push(given.getDecorator('database'))
          return starter(broker)()
        },
      },
    })
    await app.ready()
    expect(seen).toEqual(['the pool'])
    await app.close()
  })

  it('can be used from a plugin with a prefix, and belongs to the whole app', async () => {
    const app = fastify()
    onTestFinished(() => app.close())
    await app.register(redrive, { consumers: { orders: starter(new MemoryBroker()) } })
    await app.register(
      async (scope) => {
        scope.get('/running', async () => [...scope.redrive.running.keys()])
      },
      { prefix: '/admin' },
    )
    await app.ready()
    expect(await get(app, '/admin/running')).toEqual({ status: 200, body: ['orders'] })
  })
})

describe('the health routes', () => {
  it('report ready while the consumers work', async () => {
    const app = await appWith({ consumers: { orders: starter(new MemoryBroker()) } })
    await app.ready()
    expect(await get(app, '/healthz/ready')).toEqual({
      status: 200,
      body: { status: 'up', consumers: { orders: { status: 'up', reasons: [] } } },
    })
    expect(await get(app, '/healthz/live')).toEqual({ status: 200, body: { status: 'up' } })
  })

  it('report a consumer that is down with its reasons, and serve requests', async () => {
    const app = await appWith({ consumers: { orders: starter(new MemoryBroker()) } })
    await app.ready()
    app.redrive.running.get('orders')?.pause()
    expect(await get(app, '/healthz/ready')).toEqual({
      status: 200,
      body: {
        status: 'down',
        consumers: { orders: { status: 'down', reasons: ['It was paused.'] } },
      },
    })
    expect((await get(app, '/healthz/live')).status).toBe(200)
  })

  it('report depth, breaker and failures of each consumer at /healthz/consumer', async () => {
    const app = await appWith({
      consumers: { orders: starter(new MemoryBroker()) },
      health: { deadLetters: { orders: () => 101 } },
    })
    await app.ready()
    expect(await get(app, '/healthz/consumer')).toEqual({
      status: 503,
      body: {
        status: 'degraded',
        consumers: {
          orders: {
            status: 'degraded',
            reasons: ['It has 101 dead letters, more than 100.'],
            breaker: { dependency: 'orders', phase: 'closed' },
            deadLetters: 101,
            lastHandledAt: null,
            failureRate: null,
          },
        },
      },
    })
    expect((await get(app, '/healthz/ready')).status).toBe(200)
  })

  it('are not ready with a consumer that is down, if only the consumers matter', async () => {
    const app = await appWith({
      consumers: { orders: starter(new MemoryBroker()) },
      health: { ready: 'consuming' },
    })
    await app.ready()
    app.redrive.running.get('orders')?.pause()
    const { status, body } = await get(app, '/healthz/ready')
    expect(status).toBe(503)
    expect(body).toMatchObject({ status: 'down' })
  })

  it('have another path, or are missing', async () => {
    const consumers = { orders: starter(new MemoryBroker()) }
    const moved = await appWith({ consumers, health: { path: '/internal/health' } })
    expect((await get(moved, '/internal/health/ready')).status).toBe(200)
    expect((await get(moved, '/healthz/ready')).status).toBe(404)
    const without = await appWith({
      consumers: { mails: starter(new MemoryBroker()) },
      health: 'off',
    })
    expect((await get(without, '/healthz/ready')).status).toBe(404)
  })
})

describe('the options', () => {
  it('are rejected with all problems together', async () => {
    const app = fastify()
    const options = { consumer: {}, drain: 'soon', health: { path: 'health', redy: 1 } }
    const registered = async () => app.register(redrive, options as never)
    await expect(registered()).rejects.toThrow(
      [
        'The options of the plugin of @redrive/fastify are invalid:',
        '- consumers: expected an object with functions that start a consumer, such as { orders: () => consume(…) }, got nothing',
        "- drain: expected a duration from 0ms to 366d such as '250ms', '5s' or '2m', got 'soon'",
        "- health.path: expected a path such as '/healthz', got 'health'",
        '- health.redy: unknown option; known options: clock, deadLetters, maxDeadLetters, maxFailureRate, path, ready',
        '- consumer: unknown option; known options: consumers, drain, health',
      ].join('\n'),
    )
  })
})
