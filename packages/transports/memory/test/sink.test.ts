import type { OutboundEvent } from '@redrive/runtime'
import { describe, expect, it } from 'vitest'
import { MemoryBroker, memorySink } from '../src/index.ts'
import { toDelivery } from '../src/delivery.ts'

const signal = new AbortController().signal

const event = (given: Partial<OutboundEvent> = {}): OutboundEvent => ({
  id: 'event-1',
  key: 'key 1 ä',
  type: 'order.placed',
  lane: 'a',
  at: 1,
  bytes: Uint8Array.of(1, 2),
  contentType: 'application/json',
  headers: { trace: 'abc' },
  ...given,
})

describe('a memory sink', () => {
  it('publishes events to the queue, where a consumer gets them with their id and key', async () => {
    const broker = new MemoryBroker()
    const sink = memorySink({ broker, queue: 'orders' })
    await sink.send([event(), event({ id: 'b', key: 'b', lane: undefined })], { signal })
    const deliveries = broker
      .contents('orders')
      .map((message) => toDelivery('orders', { tag: 1, message, deliveryCount: 1 }))
    const [first, second] = ['event-1', 'b'].map((id) => deliveries.find((one) => one.id === id))
    const { at: _, ...rest } = event()
    expect(first).toMatchObject(rest)
    expect(second).toMatchObject({ key: 'b', lane: undefined })
  })

  it('rejects when the queue is full, the signal has fired or it was closed, and survives a restart', async () => {
    const broker = new MemoryBroker()
    const sink = memorySink({ broker, queue: 'orders' })
    broker.restart()
    await sink.healthCheck()
    broker.limitQueue('orders', 1)
    await sink.send([event()], { signal })
    await expect(sink.send([event()], { signal })).rejects.toMatchObject({ code: 'DLQ_FULL' })
    const over = AbortSignal.abort(new Error('over'))
    await expect(sink.send([event()], { signal: over })).rejects.toThrow('over')
    await sink.close()
    await expect(sink.send([event()], { signal })).rejects.toMatchObject({ code: 'CLOSED' })
  })
})
