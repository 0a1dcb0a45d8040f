import 'reflect-metadata'
import { Controller, type INestMicroservice } from '@nestjs/common'
import { Ctx, EventPattern, MessagePattern, Payload } from '@nestjs/microservices'
import { Test } from '@nestjs/testing'
import { business } from '@redrive/core'
import { deadLetterQueue, MemoryBroker, memory, send } from '@redrive/memory'
import type { Consumer } from '@redrive/runtime'
import { FakeClock, until } from '@redrive/testing'
import { EMPTY, type Observable, of, throwError } from 'rxjs'
import { describe, expect, it, onTestFinished } from 'vitest'
import { RedriveContext, RedriveExceptionFilter, RedriveServer } from '../src/microservices.ts'

class CardDeclined extends Error {}

const handled: string[] = []

@Controller()
class Orders {
  @EventPattern<string>('order.placed')
  place(@Payload() data: { id: string; card: string }, @Ctx() context: RedriveContext): void {
    const { attempt } = context.getAttempt()
    handled.push(`${data.id} attempt ${attempt} of ${context.getPattern()}`)
    if (data.card === 'declined') throw new CardDeclined('the card was declined')
    if (data.card === 'slow' && attempt === 1) {
      throw Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })
    }
  }

  @EventPattern({ cmd: 'stream' })
  stream(@Payload() data: { id: string; fails: boolean; isEmpty?: boolean }): Observable<string> {
    handled.push(data.id)
    if (data.isEmpty === true) return EMPTY
    return data.fails ? throwError(() => new CardDeclined('in a stream')) : of('one', 'two')
  }
}

interface Started {
  readonly broker: MemoryBroker
  readonly clock: FakeClock
  readonly app: INestMicroservice
  readonly server: RedriveServer
  readonly deadLetters: () => readonly { readonly id: string }[]
}

async function start(controller: new () => object = Orders, hasFilter = true): Promise<Started> {
  handled.length = 0
  const clock = new FakeClock()
  const broker = new MemoryBroker({ clock })
  const server = new RedriveServer({
    transport: memory({ broker, queue: 'orders' }),
    consume: { clock, logger: 'off', classify: [business(CardDeclined)], retry: { attempts: 3 } },
  })
  const tested = await Test.createTestingModule({ controllers: [controller] }).compile()
  const app = tested.createNestMicroservice({ strategy: server, logger: false })
  if (hasFilter) app.useGlobalFilters(new RedriveExceptionFilter())
  const deadLetters = () => broker.contents(deadLetterQueue('orders'))
  onTestFinished(() => app.close())
  await app.listen()
  return { broker, clock, app, server, deadLetters }
}

const event = (pattern: unknown, data: unknown) => ({ pattern, data })

describe('an @EventPattern handler', () => {
  it('settles, retries and dead-letters by the error that it throws', async () => {
    const { broker, clock, deadLetters } = await start()
    send(broker, 'orders', event('order.placed', { id: 'a', card: 'good' }), { id: 'a' })
    send(broker, 'orders', event('order.placed', { id: 'b', card: 'slow' }), { id: 'b' })
    send(broker, 'orders', event('order.placed', { id: 'c', card: 'declined' }), { id: 'c' })
    await clock.advance('10m')
    expect(handled).toEqual([
      'a attempt 1 of order.placed',
      'b attempt 1 of order.placed',
      'c attempt 1 of order.placed',
      'b attempt 2 of order.placed',
    ])
    expect(deadLetters()).toMatchObject([
      { id: 'c', headers: { 'redrive-class': 'business', 'redrive-reason': 'terminal' } },
    ])
    expect(broker.depth('orders')).toBe(0)
  })

  it('may return a stream, whose error fails the attempt', async () => {
    const { broker, clock, deadLetters } = await start()
    send(broker, 'orders', event({ cmd: 'stream' }, { id: 'a', fails: false }), { id: 'a' })
    send(broker, 'orders', event({ cmd: 'stream' }, { id: 'b', fails: true }), { id: 'b' })
    send(broker, 'orders', event({ cmd: 'stream' }, { id: 'c', isEmpty: true }), { id: 'c' })
    await clock.advance('1s')
    expect(handled).toEqual(['a', 'b', 'c'])
    expect(deadLetters()).toMatchObject([{ id: 'b' }])
  })

  it('gets messages of other producers by their type', async () => {
    const { broker, clock } = await start()
    send(broker, 'orders', { id: 'a', card: 'good' }, { type: 'order.placed' })
    await clock.advance('1s')
    expect(handled).toEqual(['a attempt 1 of order.placed'])
  })

  it('loses the class of its error without the filter of Redrive', async () => {
    const { broker, clock, deadLetters } = await start(Orders, false)
    send(broker, 'orders', event('order.placed', { id: 'c', card: 'declined' }), { id: 'c' })
    await clock.advance('1h')
    expect(handled.length).toBeGreaterThan(1)
    expect(deadLetters()).not.toMatchObject([{ headers: { 'redrive-class': 'business' } }])
  })
})

describe('a message without a handler', () => {
  it('becomes a dead letter that names the known patterns', async () => {
    const { broker, clock, deadLetters } = await start()
    send(broker, 'orders', event('order.paid', {}), { id: 'a' })
    await clock.advance('1s')
    expect(deadLetters()).toHaveLength(1)
    expect(broker.contents(deadLetterQueue('orders'))[0]?.headers['redrive-history']).toContain(
      'There is no @EventPattern handler for \\"order.paid\\". Patterns with a handler: order.placed',
    )
  })

  it('becomes a dead letter when it is a request, because it gets no response', async () => {
    const { broker, clock, deadLetters } = await start()
    send(broker, 'orders', { ...event('order.placed', { id: 'a' }), id: 'request-1' })
    await clock.advance('1s')
    expect(handled).toEqual([])
    expect(deadLetters()).toHaveLength(1)
  })
})

describe('the strategy', () => {
  it('does not start with @MessagePattern handlers', async () => {
    @Controller()
    class Requests {
      @MessagePattern('sum')
      sum(): number {
        return 1
      }
    }
    await expect(start(Requests)).rejects.toThrow(
      'RedriveServer has no responses, so it cannot serve @MessagePattern: "sum".',
    )
  })

  it('finishes running handlers when the app closes, and exposes the consumer', async () => {
    let finish = (): void => undefined
    const order: string[] = []
    @Controller()
    class Slow {
      @EventPattern<string>('order.placed')
      async place(): Promise<void> {
        order.push('began')
        await new Promise<void>((resolve) => {
          finish = resolve
        })
        order.push('ended')
      }
    }
    const { broker, clock, app, server } = await start(Slow)
    expect(server.unwrap<Consumer>().health().status).toBe('up')
    send(broker, 'orders', event('order.placed', {}))
    await clock.settle()
    let isClosed = false
    const closed = app.close().then(() => (isClosed = true))
    await until('the consumer stops', () => server.unwrap<Consumer>().health().status === 'down')
    await clock.settle()
    expect(isClosed).toBe(false)
    finish()
    await closed
    expect(order).toEqual(['began', 'ended'])
    expect(broker.depth('orders')).toBe(0)
  })
})
