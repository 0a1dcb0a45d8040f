import { aDelivery } from '@redrive/dev-support'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { RabbitMqDelivery } from '../src/index.ts'
import { type Acknowledger, UnackedDeliveries } from '../src/unacked.ts'

/** The broker's state of one channel. It rejects an unknown tag with PRECONDITION_FAILED. */
class Broker implements Acknowledger {
  readonly unacked = new Set<number>()
  readonly returned: number[] = []
  readonly frames: string[] = []
  readonly errors: string[] = []

  ack({ fields: { deliveryTag } }: RabbitMqDelivery['raw'], allUpTo = false): void {
    this.frames.push(allUpTo ? `ack ..${deliveryTag}` : `ack ${deliveryTag}`)
    this.#forget(deliveryTag, allUpTo)
  }

  nack(
    { fields: { deliveryTag } }: RabbitMqDelivery['raw'],
    allUpTo = false,
    requeue = true,
  ): void {
    this.frames.push(`nack ${deliveryTag}`)
    if (requeue) this.returned.push(deliveryTag)
    this.#forget(deliveryTag, allUpTo)
  }

  #forget(tag: number, allUpTo: boolean): void {
    if (!this.unacked.has(tag))
      this.errors.push(`PRECONDITION_FAILED - unknown delivery tag ${tag}`)
    for (const one of this.unacked) {
      if (one === tag || (allUpTo && one < tag)) this.unacked.delete(one)
    }
  }
}

function deliveryOf(tag: number): RabbitMqDelivery {
  const raw = { fields: { deliveryTag: tag }, properties: {}, content: Buffer.alloc(0) }
  return {
    ...aDelivery(`${tag}`, { bytes: raw.content }),
    raw: raw as RabbitMqDelivery['raw'],
  }
}

function setup(count: number) {
  const broker = new Broker()
  const unsettled = new UnackedDeliveries(broker)
  const deliveries: RabbitMqDelivery[] = []
  const deliver = () => {
    const delivery = deliveryOf(deliveries.length + 1)
    deliveries.push(delivery)
    broker.unacked.add(deliveries.length)
    unsettled.add(delivery)
  }
  for (let index = 0; index < count; index++) deliver()
  const nth = (tag: number) => deliveries[tag - 1] as RabbitMqDelivery
  return { broker, unsettled, deliveries, deliver, nth }
}

const turn = () => new Promise((resolve) => setImmediate(resolve))

describe('acknowledgements', () => {
  it('are one frame for all deliveries finished in order', async () => {
    const { broker, unsettled, nth } = setup(5)
    for (const tag of [2, 1, 4, 3]) expect(unsettled.settle(nth(tag))).toBe(true)
    expect(broker.frames).toEqual([])
    await turn()
    expect(broker.frames).toEqual(['ack ..4'])
    expect([...broker.unacked]).toEqual([5])
  })

  it('are sent one by one after an unfinished delivery', () => {
    const { broker, unsettled, nth } = setup(5)
    for (const tag of [5, 2, 4]) unsettled.settle(nth(tag))
    unsettled.flush()
    expect(broker.frames).toEqual(['ack 5', 'ack 2', 'ack 4'])
    expect([...broker.unacked]).toEqual([1, 3])
  })

  it('are one frame below the oldest unfinished delivery, and single frames above it', () => {
    const { broker, unsettled, nth } = setup(6)
    for (const tag of [1, 2, 4, 6]) unsettled.settle(nth(tag))
    unsettled.flush()
    expect(broker.frames.toSorted()).toEqual(['ack ..2', 'ack 4', 'ack 6'])
    expect([...broker.unacked]).toEqual([3, 5])
  })

  it('never use a tag that was sent before', () => {
    const { broker, unsettled, nth } = setup(3)
    unsettled.settle(nth(3))
    unsettled.flush()
    unsettled.settle(nth(1))
    unsettled.settle(nth(2))
    unsettled.flush()
    expect(broker.frames).toEqual(['ack 3', 'ack ..2'])
    expect(broker.errors).toEqual([])
  })

  it('skip deliveries that were returned', () => {
    const { broker, unsettled, nth } = setup(3)
    unsettled.settle(nth(1))
    expect(unsettled.returnToQueue(nth(2))).toBe(true)
    unsettled.settle(nth(3))
    unsettled.flush()
    expect(broker.frames).toEqual(['nack 2', 'ack ..3'])
    expect(broker.returned).toEqual([2])
    expect(broker.errors).toEqual([])
  })

  it('are sent once, even if flush is called repeatedly', async () => {
    const { broker, unsettled, nth } = setup(1)
    unsettled.settle(nth(1))
    unsettled.flush()
    unsettled.flush()
    await turn()
    expect(broker.frames).toEqual(['ack ..1'])
  })
})

describe('a delivery that is not on this channel', () => {
  it('is rejected when it came from another channel with the same tag', () => {
    const { broker, unsettled } = setup(1)
    const foreign = deliveryOf(1)
    expect(unsettled.has(foreign)).toBe(false)
    expect(unsettled.settle(foreign)).toBe(false)
    expect(unsettled.returnToQueue(foreign)).toBe(false)
    unsettled.flush()
    expect(broker.frames).toEqual([])
    expect(unsettled.all()).toHaveLength(1)
  })

  it('is rejected the second time', () => {
    const { broker, unsettled, nth } = setup(2)
    expect(unsettled.settle(nth(1))).toBe(true)
    expect(unsettled.settle(nth(1))).toBe(false)
    expect(unsettled.returnToQueue(nth(1))).toBe(false)
    expect(unsettled.returnToQueue(nth(2))).toBe(true)
    expect(unsettled.settle(nth(2))).toBe(false)
    unsettled.flush()
    expect(broker.errors).toEqual([])
  })

  it('is rejected after the channel was lost, and no pending acknowledgement is sent', async () => {
    const { broker, unsettled, nth } = setup(3)
    unsettled.settle(nth(1))
    expect(unsettled.abandon()).toEqual([nth(2), nth(3)])
    expect(unsettled.settle(nth(2))).toBe(false)
    expect(unsettled.returnToQueue(nth(3))).toBe(false)
    unsettled.flush()
    await turn()
    expect(broker.frames).toEqual([])
    expect(unsettled.all()).toEqual([])
  })
})

type Step =
  | { readonly do: 'deliver' | 'flush' | 'turn' }
  | { readonly do: 'settle' | 'returnToQueue'; readonly which: number }

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.constant<Step>({ do: 'deliver' }) },
  {
    weight: 5,
    arbitrary: fc.record({ do: fc.constant('settle' as const), which: fc.nat({ max: 40 }) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('returnToQueue' as const), which: fc.nat({ max: 40 }) }),
  },
  { weight: 1, arbitrary: fc.constantFrom<Step>({ do: 'flush' }, { do: 'turn' }) },
)

it('keeps exactly the unfinished deliveries at the broker, in any order, and never sends an unknown tag', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 80 }), async (steps) => {
      const { broker, unsettled, deliveries, deliver, nth } = setup(0)
      const unfinished = new Set<number>()
      for (const one of steps) {
        if ('which' in one) {
          if (deliveries.length === 0) continue
          const tag = 1 + (one.which % deliveries.length)
          if (unsettled[one.do](nth(tag)) !== unfinished.delete(tag))
            broker.errors.push(`lied about ${tag}`)
        } else if (one.do === 'deliver') {
          deliver()
          unfinished.add(deliveries.length)
        } else if (one.do === 'flush') unsettled.flush()
        else await turn()
        // An unfinished delivery is never acknowledged.
        expect([...unfinished].every((tag) => broker.unacked.has(tag))).toBe(true)
      }
      await turn()
      expect([...broker.unacked]).toEqual([...unfinished])
      expect(broker.errors).toEqual([])
    }),
    { numRuns: 500 },
  )
})
