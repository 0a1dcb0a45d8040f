import 'reflect-metadata'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Injectable, Module, type OnModuleDestroy, type Provider, Scope } from '@nestjs/common'
import { Test, type TestingModule } from '@nestjs/testing'
import { business, exponential } from '@redrive/core'
import { deadLetterQueue, MemoryBroker, memory, send } from '@redrive/memory'
import { type AttemptContext, healthHandler, type Message } from '@redrive/runtime'
import { FakeClock, until } from '@redrive/testing'
import { describe, expect, it, onTestFinished } from 'vitest'
import {
  Redrive,
  REDRIVE_OPTIONS,
  RedriveConsumers,
  RedriveHealth,
  RedriveModule,
} from '../src/index.ts'
import { memoryOptions, RedriveTestingModule } from '../src/testing.ts'

class CardDeclined extends Error {}

interface Order {
  readonly card: string
}

@Injectable()
class OrderService {
  readonly charged: string[] = []
  readonly attempts: number[] = []

  @Redrive<Order>({
    source: 'orders',
    classify: [business(CardDeclined)],
    retry: { backoff: exponential({ base: '1s', cap: '1m' }) },
  })
  charge({ body, id }: Message<Order>, { attempt }: AttemptContext): void {
    this.attempts.push(attempt)
    if (body.card === 'declined') throw new CardDeclined('the card was declined')
    if (body.card === 'slow' && attempt === 1) {
      throw Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })
    }
    this.charged.push(id)
  }
}

interface Built {
  readonly broker: MemoryBroker
  readonly clock: FakeClock
  readonly app: TestingModule
}

/** An app with the providers, on a broker in memory. The test advances the clock. */
async function build(providers: readonly Provider[]): Promise<Built> {
  const clock = new FakeClock()
  const broker = new MemoryBroker({ clock })
  const imports = [RedriveTestingModule.forRoot({ broker, defaults: { clock, logger: 'off' } })]
  const app = await Test.createTestingModule({ imports, providers: [...providers] }).compile()
  onTestFinished(() => app.close())
  return { broker, clock, app }
}

describe('a decorated method', () => {
  it('handles messages with the other providers of its class, and is retried and dead-lettered', async () => {
    const { app, broker, clock } = await build([OrderService])
    await app.init()
    send(broker, 'orders', { card: 'good' }, { id: 'a' })
    send(broker, 'orders', { card: 'slow' }, { id: 'b' })
    send(broker, 'orders', { card: 'declined' }, { id: 'c' })
    await clock.advance('5m')
    const service = app.get(OrderService)
    expect(service.charged).toEqual(['a', 'b'])
    expect(service.attempts).toEqual([1, 1, 1, 2])
    expect(broker.contents(deadLetterQueue('orders'))).toMatchObject([{ id: 'c' }])
  })

  it('does not run before all modules have started', async () => {
    const order: string[] = []
    @Injectable()
    class Late {
      onApplicationBootstrap() {
        order.push(`database, ${this.#broker?.depth('orders')} messages wait`)
      }
      readonly #broker: MemoryBroker | undefined
      constructor(given?: MemoryBroker) {
        this.#broker = given
      }
    }
    const clock = new FakeClock()
    const broker = new MemoryBroker({ clock })
    send(broker, 'orders', { card: 'good' }, { id: 'a' })
    @Module({ providers: [{ provide: Late, useFactory: () => new Late(broker) }] })
    class DatabaseModule {}
    const redrive = RedriveTestingModule.forRoot({ broker, defaults: { clock, logger: 'off' } })
    // Imported before and after: the order of imports does not matter.
    const app = await Test.createTestingModule({
      imports: [redrive, DatabaseModule],
      providers: [OrderService],
    }).compile()
    onTestFinished(() => app.close())
    await app.init()
    await clock.settle()
    expect(order).toEqual(['database, 1 messages wait'])
    expect(app.get(OrderService).charged).toEqual(['a'])
  })

  it.each([
    ['first', true],
    ['last', false],
  ])(
    'finishes before other modules are destroyed, with RedriveModule imported %s',
    async (_, isFirst) => {
      const order: string[] = []
      let finish = (): void => undefined
      @Injectable()
      class Slow {
        @Redrive({ source: 'orders' })
        async handle() {
          order.push('handler began')
          await new Promise<void>((resolve) => {
            finish = resolve
          })
          order.push('handler ended')
        }
      }
      @Injectable()
      class Database implements OnModuleDestroy {
        onModuleDestroy() {
          order.push('database closed')
        }
      }
      @Module({ providers: [Database] })
      class DatabaseModule {}
      const broker = new MemoryBroker()
      const redrive = RedriveTestingModule.forRoot({ broker, defaults: { logger: 'off' } })
      const app = await Test.createTestingModule({
        imports: isFirst ? [redrive, DatabaseModule] : [DatabaseModule, redrive],
        providers: [Slow],
      }).compile()
      await app.init()
      send(broker, 'orders', {})
      await until('the handler runs', () => order.length === 1)
      const closed = app.close()
      await until('the consumer stops', () => app.get(RedriveConsumers).health().status === 'down')
      finish()
      await closed
      expect(order).toEqual(['handler began', 'handler ended', 'database closed'])
      expect(broker.depth('orders')).toBe(0)
    },
  )

  it('is rejected in a request-scoped class, because a message has no request', async () => {
    @Injectable({ scope: Scope.REQUEST })
    class Scoped {
      @Redrive({ source: 'orders' })
      handle() {}
    }
    const { app } = await build([Scoped])
    await expect(app.init()).rejects.toThrow(
      '@Redrive cannot be used on Scoped.handle, because its class or one of its dependencies is request-scoped.',
    )
  })

  it('is rejected when two modules provide its class', async () => {
    @Module({ providers: [OrderService] })
    class First {}
    @Module({ providers: [OrderService] })
    class Second {}
    const broker = new MemoryBroker()
    const app = await Test.createTestingModule({
      imports: [First, Second, RedriveTestingModule.forRoot({ broker })],
    }).compile()
    await expect(app.init()).rejects.toThrow('@Redrive on OrderService.charge was found twice.')
  })

  it('accepts only messages that its schema can return', () => {
    const schema = {
      '~standard': {
        version: 1,
        vendor: 'test',
        validate: (value: unknown) => ({ value: value as Order }),
      },
    } as const
    class Typed {
      @Redrive({ source: 'orders', schema })
      right(message: Message<Order>) {
        return message
      }

      // @ts-expect-error The schema returns an order.
      @Redrive({ source: 'orders', schema })
      wrong(message: Message<number>) {
        return message
      }
    }
    expect(Object.getOwnPropertyNames(Typed.prototype)).toEqual(['constructor', 'right', 'wrong'])
  })
})

describe('the module', () => {
  it('takes its options from other providers, and chooses a transport by the name of the broker', async () => {
    const [main, other] = [new MemoryBroker(), new MemoryBroker()]
    const handled: string[] = []
    @Injectable()
    class Two {
      @Redrive({ source: 'orders' })
      order({ source }: Message) {
        handled.push(`main ${source}`)
      }
      @Redrive({ source: 'clicks', broker: 'other' })
      click({ source }: Message) {
        handled.push(`other ${source}`)
      }
    }
    @Module({
      providers: [{ provide: 'BROKERS', useValue: { main, other } }],
      exports: ['BROKERS'],
    })
    class BrokerModule {}
    const redrive = RedriveModule.forRootAsync({
      imports: [BrokerModule],
      inject: ['BROKERS'],
      useFactory: (brokers: Record<string, MemoryBroker>) => ({
        transport: ({ source, broker = 'main' }) =>
          memory({ broker: brokers[broker] as MemoryBroker, queue: source }),
        defaults: { logger: 'off' },
      }),
    })
    const app = await Test.createTestingModule({ imports: [redrive], providers: [Two] }).compile()
    await app.init()
    onTestFinished(() => app.close())
    send(main, 'orders', {})
    send(other, 'clicks', {})
    await until('both are handled', () => handled.length === 2)
    expect(handled.toSorted()).toEqual(['main orders', 'other clicks'])
    expect([...app.get(RedriveConsumers).running.keys()]).toEqual(['Two.order', 'Two.click'])
  })

  it('runs a whole app in memory when a test overrides its options', async () => {
    const fails = RedriveModule.forRoot({
      transport: () => {
        throw new Error('the real broker was used')
      },
    })
    const broker = new MemoryBroker()
    const app = await Test.createTestingModule({ imports: [fails], providers: [OrderService] })
      .overrideProvider(REDRIVE_OPTIONS)
      .useValue(memoryOptions({ broker, defaults: { logger: 'off' } }))
      .compile()
    onTestFinished(() => app.close())
    await app.init()
    send(broker, 'orders', { card: 'good' }, { id: 'a' })
    await until('it is charged', () => app.get(OrderService).charged.length === 1)
    expect(broker.depth('orders')).toBe(0)
  })

  it('rejects the start with the problems of its options', async () => {
    const redrive = RedriveModule.forRoot({ drain: 'soon' } as never)
    const app = await Test.createTestingModule({ imports: [redrive] }).compile()
    await expect(app.init()).rejects.toThrow(
      'The options of RedriveModule are invalid:\n- transport: expected a function, got nothing\n- drain: expected',
    )
  })

  it('rejects the start when it is imported with two different options', async () => {
    const [one, two] = [new MemoryBroker(), new MemoryBroker()]
    const building = Test.createTestingModule({
      imports: [
        RedriveTestingModule.forRoot({ broker: one, defaults: { name: 'one' } }),
        RedriveTestingModule.forRoot({ broker: two, defaults: { name: 'two' } }),
      ],
    }).compile()
    await expect(building).rejects.toThrow('RedriveModule was imported with different options.')
  })
})

describe('the health indicator', () => {
  it('has the shape of terminus, and the reasons of each consumer', async () => {
    const { app } = await build([OrderService])
    await app.init()
    const health = app.get(RedriveHealth)
    expect(health.isHealthy('redrive')).toEqual({
      redrive: {
        status: 'up',
        consumers: { 'OrderService.charge': { status: 'up', reasons: [] } },
      },
    })
    app.get(RedriveConsumers).running.get('OrderService.charge')?.pause()
    expect(health.isHealthy('redrive')).toEqual({
      redrive: {
        status: 'down',
        consumers: { 'OrderService.charge': { status: 'down', reasons: ['It was paused.'] } },
      },
    })
    expect(health.isHealthy('redrive', { ready: 'started' }).redrive.status).toBe('up')
  })

  it('has the routes of healthHandler, with the consumers of the module', async () => {
    const { app } = await build([OrderService])
    await app.init()
    const handle = healthHandler(app.get(RedriveConsumers))
    const server = createServer((request, response) => handle(request, response))
    onTestFinished(() => void server.close())
    server.listen(0, '127.0.0.1')
    await until('the server listens', () => server.listening)
    const { port } = server.address() as AddressInfo
    const response = await fetch(`http://127.0.0.1:${port}/healthz/consumer`)
    expect([response.status, await response.json()]).toMatchObject([
      200,
      { consumers: { 'OrderService.charge': { breaker: { phase: 'closed' } } } },
    ])
  })
})
