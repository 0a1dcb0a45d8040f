import { FIRST_CYCLE } from '@redrive/core'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { RabbitMqDelivery } from '../src/index.ts'
import { type Acknowledger, Unsettled } from '../src/unsettled.ts'

/** What the broker keeps of one channel; it answers a tag it does not wait for with PRECONDITION_FAILED. */
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
    raw: raw as RabbitMqDelivery['raw'],
    id: `${tag}`,
    source: 'orders',
    lane: undefined,
    key: `${tag}`,
    type: undefined,
    bytes: raw.content,
    contentType: undefined,
    headers: {},
    cycle: FIRST_CYCLE,
    deliveryCount: 1,
    replayId: undefined,
    headerProblems: [],
  }
}

function setup(count: number) {
  const broker = new Broker()
  const unsettled = new Unsettled(broker)
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
  it('leave as one frame for everything that is finished from the oldest on', async () => {
    const { broker, unsettled, nth } = setup(5)
    for (const tag of [2, 1, 4, 3]) expect(unsettled.settle(nth(tag))).toBe(true)
    expect(broker.frames).toEqual([])
    await turn()
    expect(broker.frames).toEqual(['ack ..4'])
    expect([...broker.unacked]).toEqual([5])
  })

  it('go one by one behind a delivery that is still in hand', () => {
    const { broker, unsettled, nth } = setup(5)
    for (const tag of [5, 2, 4]) unsettled.settle(nth(tag))
    unsettled.flush()
    expect(broker.frames).toEqual(['ack 5', 'ack 2', 'ack 4'])
    expect([...broker.unacked]).toEqual([1, 3])
  })

  it('split at the oldest in hand: one frame below it, single ones above', () => {
    const { broker, unsettled, nth } = setup(6)
    for (const tag of [1, 2, 4, 6]) unsettled.settle(nth(tag))
    unsettled.flush()
    expect(broker.frames.toSorted()).toEqual(['ack ..2', 'ack 4', 'ack 6'])
    expect([...broker.unacked]).toEqual([3, 5])
  })

  it('never name a tag that was sent before', () => {
    const { broker, unsettled, nth } = setup(3)
    unsettled.settle(nth(3))
    unsettled.flush()
    unsettled.settle(nth(1))
    unsettled.settle(nth(2))
    unsettled.flush()
    expect(broker.frames).toEqual(['ack 3', 'ack ..2'])
    expect(broker.errors).toEqual([])
  })

  it('pass over what was given back in between', () => {
    const { broker, unsettled, nth } = setup(3)
    unsettled.settle(nth(1))
    expect(unsettled.giveBack(nth(2))).toBe(true)
    unsettled.settle(nth(3))
    unsettled.flush()
    expect(broker.frames).toEqual(['nack 2', 'ack ..3'])
    expect(broker.returned).toEqual([2])
    expect(broker.errors).toEqual([])
  })

  it('are sent once, however often we flush', async () => {
    const { broker, unsettled, nth } = setup(1)
    unsettled.settle(nth(1))
    unsettled.flush()
    unsettled.flush()
    await turn()
    expect(broker.frames).toEqual(['ack ..1'])
  })
})

describe('a delivery that is not ours', () => {
  it('is refused when it came from another channel with the same tag', () => {
    const { broker, unsettled } = setup(1)
    const foreign = deliveryOf(1)
    expect(unsettled.has(foreign)).toBe(false)
    expect(unsettled.settle(foreign)).toBe(false)
    expect(unsettled.giveBack(foreign)).toBe(false)
    unsettled.flush()
    expect(broker.frames).toEqual([])
    expect(unsettled.all()).toHaveLength(1)
  })

  it('is refused the second time', () => {
    const { broker, unsettled, nth } = setup(2)
    expect(unsettled.settle(nth(1))).toBe(true)
    expect(unsettled.settle(nth(1))).toBe(false)
    expect(unsettled.giveBack(nth(1))).toBe(false)
    expect(unsettled.giveBack(nth(2))).toBe(true)
    expect(unsettled.settle(nth(2))).toBe(false)
    unsettled.flush()
    expect(broker.errors).toEqual([])
  })

  it('is refused after the channel is gone, and nothing that was due is sent', async () => {
    const { broker, unsettled, nth } = setup(3)
    unsettled.settle(nth(1))
    expect(unsettled.abandon()).toEqual([nth(2), nth(3)])
    expect(unsettled.settle(nth(2))).toBe(false)
    expect(unsettled.giveBack(nth(3))).toBe(false)
    unsettled.flush()
    await turn()
    expect(broker.frames).toEqual([])
    expect(unsettled.all()).toEqual([])
  })
})

type Step =
  | { readonly do: 'deliver' | 'flush' | 'turn' }
  | { readonly do: 'settle' | 'giveBack'; readonly which: number }

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.constant<Step>({ do: 'deliver' }) },
  {
    weight: 5,
    arbitrary: fc.record({ do: fc.constant('settle' as const), which: fc.nat({ max: 40 }) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('giveBack' as const), which: fc.nat({ max: 40 }) }),
  },
  { weight: 1, arbitrary: fc.constantFrom<Step>({ do: 'flush' }, { do: 'turn' }) },
)

it('in any order, the broker keeps exactly what is in hand and never sees a tag it does not know', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 80 }), async (steps) => {
      const { broker, unsettled, deliveries, deliver, nth } = setup(0)
      const inHand = new Set<number>()
      for (const one of steps) {
        if ('which' in one) {
          if (deliveries.length === 0) continue
          const tag = 1 + (one.which % deliveries.length)
          if (unsettled[one.do](nth(tag)) !== inHand.delete(tag))
            broker.errors.push(`lied about ${tag}`)
        } else if (one.do === 'deliver') {
          deliver()
          inHand.add(deliveries.length)
        } else if (one.do === 'flush') unsettled.flush()
        else await turn()
        // Whatever is on its way: what is in hand is never acknowledged.
        expect([...inHand].every((tag) => broker.unacked.has(tag))).toBe(true)
      }
      await turn()
      expect([...broker.unacked]).toEqual([...inHand])
      expect(broker.errors).toEqual([])
    }),
    { numRuns: 500 },
  )
})
