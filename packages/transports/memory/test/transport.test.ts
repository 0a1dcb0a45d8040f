import { type Decision, type Delivery, FIRST_CYCLE, SETTLE } from '@redrive/core'
import { aFailure } from '@redrive/dev-support'
import type { Receiver } from '@redrive/runtime'
import { FakeClock } from '@redrive/testing'
import { describe, expect, it } from 'vitest'
import {
  deadLetterQueue,
  MemoryBroker,
  type MemoryConnection,
  type MemoryDelivery,
  memory,
  memorySource,
  replayedQueue,
  send,
} from '../src/index.ts'

const QUEUE = 'orders'

class Inbox implements Receiver<MemoryDelivery> {
  readonly deliveries: MemoryDelivery[] = []
  readonly lostOnes: Delivery[] = []
  deliver(delivery: MemoryDelivery): void {
    this.deliveries.push(delivery)
  }
  lost(delivery: Delivery): void {
    this.lostOnes.push(delivery)
  }
  get last(): MemoryDelivery {
    const delivery = this.deliveries.at(-1)
    if (delivery === undefined) throw new Error('nothing was delivered')
    return delivery
  }
}

const DEAD_LETTER: Decision = {
  kind: 'deadLetter',
  reason: 'terminal',
  cycle: FIRST_CYCLE,
  failure: aFailure({ class: 'business' }),
}

async function setup(
  change: (connection: MemoryConnection) => Partial<MemoryConnection> = () => ({}),
) {
  const broker = new MemoryBroker({ clock: new FakeClock() })
  const connect = (onLost: () => void): MemoryConnection => {
    const inner = broker.connect(onLost)
    return {
      publish: (...request) => inner.publish(...request),
      subscribe: (...request) => inner.subscribe(...request),
      take: (...request) => inner.take(...request),
      ack: (tag) => inner.ack(tag),
      release: (tag) => inner.release(tag),
      depth: (queue) => inner.depth(queue),
      queues: (prefix) => inner.queues(prefix),
      close: () => inner.close(),
      ...change(inner),
    }
  }
  const transport = memory({ broker, queue: QUEUE, connect })
  const inbox = new Inbox()
  await transport.open()
  transport.limit(10)
  transport.receive(inbox)
  const deadLetters = () => broker.contents(deadLetterQueue(QUEUE)).length
  return { broker, transport, inbox, deadLetters }
}

describe('the memory transport', () => {
  it('rejects calls before it is open', () => {
    const transport = memory({ broker: new MemoryBroker(), queue: QUEUE })
    expect(() => transport.receive(new Inbox())).toThrow(/not open/)
  })

  it('does not copy again when only the acknowledgement was lost', async () => {
    let acks = 0
    const { broker, transport, inbox, deadLetters } = await setup((connection) => ({
      ack: (tag) => (++acks === 1 ? Promise.reject(new Error('cut off')) : connection.ack(tag)),
    }))
    send(broker, QUEUE, {})
    const delivery = inbox.last
    expect(await transport.enact(delivery, DEAD_LETTER)).toMatchObject({ kind: 'unknown' })
    expect([broker.contents(QUEUE).length, deadLetters()]).toEqual([1, 1])
    expect(await transport.enact(delivery, DEAD_LETTER)).toMatchObject({
      destination: 'dead_letter',
    })
    expect([broker.contents(QUEUE).length, deadLetters()]).toEqual([0, 1])
  })

  it('does not confirm a replay again when only the acknowledgement was lost', async () => {
    let acks = 0
    const { broker, transport, inbox } = await setup((connection) => ({
      ack: (tag) => (++acks === 1 ? Promise.reject(new Error('cut off')) : connection.ack(tag)),
    }))
    send(broker, QUEUE, {}, { headers: { 'redrive-replay-id': 'r' } })
    const delivery = inbox.last
    expect(await transport.enact(delivery, SETTLE)).toMatchObject({ kind: 'unknown' })
    expect(await transport.enact(delivery, SETTLE)).toMatchObject({ destination: 'settled' })
    expect(broker.contents(QUEUE)).toEqual([])
    const source = memorySource({ broker, queue: QUEUE })
    const { confirmations } = await source.confirmations({ limit: 10 })
    expect(confirmations).toEqual([{ replayId: 'r', outcome: 'handled', at: broker.now() }])
  })

  it('returns unknown and keeps the original when the dead-letter queue is full', async () => {
    const { broker, transport, inbox, deadLetters } = await setup()
    broker.limitQueue(deadLetterQueue(QUEUE), 0)
    send(broker, QUEUE, {})
    const result = await transport.enact(inbox.last, DEAD_LETTER)
    expect(result).toMatchObject({ kind: 'refused', error: { code: 'DLQ_FULL' } })
    expect([broker.contents(QUEUE).length, deadLetters()]).toEqual([1, 0])
  })

  it('reports deliveries that a restart took back, and receives them again', async () => {
    const { broker, inbox, transport } = await setup()
    const id = send(broker, QUEUE, {})
    const before = inbox.last
    broker.restart()
    expect(inbox.lostOnes).toEqual([before])
    expect(inbox.deliveries.map((one) => [one.id, one.deliveryCount])).toEqual([
      [id, 1],
      [id, 2],
    ])
    expect(await transport.enact(before, SETTLE)).toEqual({ kind: 'lost' })
    expect(await transport.enact(inbox.last, SETTLE)).toMatchObject({ destination: 'settled' })
    expect(broker.contents(QUEUE)).toEqual([])
  })

  it.each([
    ['immediately', () => false],
    ['later', () => Promise.resolve(false)],
  ])(
    'returns lost when the broker reports %s that this consumer does not own the delivery',
    async (_, ack) => {
      const { broker, inbox, transport } = await setup(() => ({ ack }))
      send(broker, QUEUE, {})
      expect(await transport.enact(inbox.last, SETTLE)).toEqual({ kind: 'lost' })
    },
  )

  it('stays paused through a restart', async () => {
    const { broker, inbox, transport } = await setup()
    await transport.pause()
    broker.restart()
    send(broker, QUEUE, {})
    expect(inbox.deliveries).toEqual([])
    transport.resume()
    expect(inbox.deliveries.length).toBe(1)
  })

  it('returns unsettled deliveries when it is closed, as if it had never received them', async () => {
    const { broker, transport, inbox } = await setup()
    for (let count = 0; count < 3; count++) send(broker, QUEUE, {})
    await transport.close()
    await transport.close()
    expect(inbox.deliveries.length).toBe(3)
    const next = memory({ broker, queue: QUEUE })
    const after = new Inbox()
    await next.open()
    next.limit(10)
    next.receive(after)
    expect(after.deliveries.map(({ deliveryCount }) => deliveryCount)).toEqual([1, 1, 1])
  })

  it('returns deliveries uncounted when it could not settle them before the close', async () => {
    const { broker, transport, inbox } = await setup()
    broker.limitQueue(deadLetterQueue(QUEUE), 0)
    send(broker, QUEUE, {})
    expect(await transport.enact(inbox.last, DEAD_LETTER)).toMatchObject({ kind: 'refused' })
    await transport.close()
    expect(broker.connect(() => undefined).take(QUEUE, 1)).toMatchObject([{ deliveryCount: 1 }])
  })

  it('makes no copy of a delivery that the broker took back', async () => {
    const { broker, transport, inbox, deadLetters } = await setup()
    send(broker, QUEUE, {})
    const before = inbox.last
    broker.restart()
    expect(await transport.enact(before, DEAD_LETTER)).toEqual({ kind: 'lost' })
    expect(deadLetters()).toBe(0)
  })
})

describe('the memory source', () => {
  it('reads dead letters of any origin', async () => {
    const broker = new MemoryBroker()
    send(broker, deadLetterQueue(QUEUE), { a: 1 }, { id: 'foreign', headers: { x: 'y' } })
    const source = memorySource({ broker, queue: QUEUE })
    const { deadLetters } = await source.drain({ limit: 10 })
    expect(deadLetters).toMatchObject([
      {
        origin: QUEUE,
        quarantined: false,
        class: 'unknown',
        reason: 'unknown',
        delivery: { id: 'foreign' },
      },
    ])
  })

  it('skips other messages, and deletes them together with the confirmations', async () => {
    const broker = new MemoryBroker()
    send(broker, replayedQueue(QUEUE), 'nonsense')
    const batch = await memorySource({ broker, queue: QUEUE }).confirmations({ limit: 10 })
    expect(batch.confirmations).toEqual([])
    await batch.release()
    expect(broker.contents(replayedQueue(QUEUE))).toEqual([])
  })

  it('continues after a restart, and drains the same dead letters again', async () => {
    const broker = new MemoryBroker()
    send(broker, deadLetterQueue(QUEUE), {}, { id: 'a' })
    const source = memorySource({ broker, queue: QUEUE })
    const batch = await source.drain({ limit: 1 })
    broker.restart()
    await batch.release()
    expect(await source.depth()).toBe(1)
    expect((await source.drain({ limit: 1 })).deadLetters.length).toBe(1)
  })
})
