import { deadLetterQueue, MemoryBroker, memory, send } from '@redrive/memory'
import { until } from '@redrive/testing'
import { describe, expect, it } from 'vitest'
import { type Consumer, consume, consumerSet, type Handler } from '../src/index.ts'

const starter =
  (broker: MemoryBroker, queue: string, handler: Handler = () => undefined) =>
  () =>
    consume(memory({ broker, queue }), handler, { logger: 'off' })

const refuse = (text: string) => (): Promise<Consumer> => Promise.reject(new Error(text))

describe('a set of consumers', () => {
  it('starts none before start, then all, and stops all', async () => {
    const broker = new MemoryBroker()
    const handled: string[] = []
    const record: Handler = ({ source }) => handled.push(source)
    const set = consumerSet({
      orders: starter(broker, 'orders', record),
      mails: starter(broker, 'mails', record),
    })
    send(broker, 'orders', {})
    send(broker, 'mails', {})
    expect(set.health()).toEqual({
      status: 'down',
      consumers: {
        orders: { status: 'down', reasons: ['It has not started.'] },
        mails: { status: 'down', reasons: ['It has not started.'] },
      },
    })
    await set.start()
    await until('both are handled', () => handled.length === 2)
    expect(set.health().status).toBe('up')
    expect([...set.running.keys()].toSorted()).toEqual(['mails', 'orders'])
    await set.stop()
    send(broker, 'orders', {})
    expect(set.health().consumers['mails']).toEqual({
      status: 'down',
      reasons: ['It is stopping or has stopped.'],
    })
    expect(broker.depth('orders')).toBe(1)
    expect(broker.contents(deadLetterQueue('orders'))).toEqual([])
  })

  it('has the worst status of its consumers, with the reasons of each', async () => {
    const broker = new MemoryBroker()
    const set = consumerSet({ orders: starter(broker, 'orders'), mails: starter(broker, 'mails') })
    await set.start()
    set.running.get('mails')?.pause()
    expect(set.health()).toEqual({
      status: 'down',
      consumers: {
        orders: { status: 'up', reasons: [] },
        mails: { status: 'down', reasons: ['It was paused.'] },
      },
    })
    await set.stop()
  })

  it('stops the others when one does not start, and rejects with its error', async () => {
    const broker = new MemoryBroker()
    const set = consumerSet({
      orders: starter(broker, 'orders'),
      mails: refuse('the queue "mails" is missing'),
    })
    await expect(set.start()).rejects.toThrow('the queue "mails" is missing')
    send(broker, 'orders', {})
    expect(broker.depth('orders')).toBe(1)
    expect(set.health().consumers['orders']?.reasons).toEqual(['It is stopping or has stopped.'])
  })

  it('stops the others when the function of one throws', async () => {
    const broker = new MemoryBroker()
    const set = consumerSet({
      mails: () => {
        throw new Error('MAIL_URL is not set')
      },
      orders: starter(broker, 'orders'),
    })
    await expect(set.start()).rejects.toThrow('MAIL_URL is not set')
    expect(set.health().consumers['orders']?.reasons).toEqual(['It is stopping or has stopped.'])
  })

  it('lists every error when several do not start', async () => {
    const set = consumerSet({ orders: refuse('no orders'), mails: refuse('no mails') })
    await expect(set.start()).rejects.toThrow('2 consumers did not start:\nno orders\nno mails')
  })

  it('stops a consumer that was still starting', async () => {
    const broker = new MemoryBroker()
    let release = (): void => undefined
    const gate = new Promise<void>((resolve) => {
      release = resolve
    })
    const set = consumerSet({
      orders: async () => {
        await gate
        return starter(broker, 'orders')()
      },
    })
    const started = set.start()
    const stopped = set.stop()
    expect(set.health().status).toBe('down')
    release()
    await started
    await stopped
    expect(set.health().consumers['orders']?.reasons).toEqual(['It is stopping or has stopped.'])
    await expect(set.stop()).resolves.toBeUndefined()
  })

  it('does not start after a stop', async () => {
    const set = consumerSet({ orders: starter(new MemoryBroker(), 'orders') })
    await set.stop()
    await expect(set.start()).rejects.toThrow('The consumers were stopped.')
    expect(set.running.size).toBe(0)
  })
})
