import { FakeClock } from '@redrive/testing'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Consumer, type Handed, type MemoryMessage, Queue } from '../src/queue.ts'

const message = (id: string, lane?: string): MemoryMessage => ({
  id,
  bytes: new Uint8Array(),
  contentType: undefined,
  type: undefined,
  lane,
  headers: {},
})

/** A consumer that keeps its messages, up to its limit. */
class Keeper implements Consumer {
  readonly handed: Handed[] = []
  limit: number
  constructor(limit: number = Number.POSITIVE_INFINITY) {
    this.limit = limit
  }
  wantsMore(): boolean {
    return this.handed.length < this.limit
  }
  hand(handed: Handed): void {
    this.handed.push(handed)
  }
  get ids(): readonly string[] {
    return this.handed.map((one) => one.message.id)
  }
  take(id: string): Handed {
    const index = this.handed.findIndex((one) => one.message.id === id)
    const [handed] = this.handed.splice(index, 1)
    if (handed === undefined) throw new Error(`${id} is not in flight`)
    return handed
  }
}

function setup() {
  const clock = new FakeClock({ now: 0 })
  let tags = 0
  const queue = new Queue(clock, () => ++tags)
  return { clock, queue }
}

describe('Queue', () => {
  it('delivers in order of arrival, as many as the consumer accepts', () => {
    const { queue } = setup()
    const keeper = new Keeper(2)
    queue.attach(keeper)
    for (const id of ['a', 'b', 'c']) queue.put(message(id), 0)
    expect(keeper.ids).toEqual(['a', 'b'])
    const { tag } = keeper.take('a')
    expect(queue.ack(tag, keeper)).toBe(true)
    expect(keeper.ids).toEqual(['b', 'c'])
    expect(queue.depth).toBe(2)
  })

  it('settles a message once, and only for its owner', () => {
    const { queue } = setup()
    const keeper = new Keeper()
    queue.attach(keeper)
    queue.put(message('a'), 0)
    const { tag } = keeper.take('a')
    expect(queue.ack(tag, new Keeper())).toBe(false)
    expect(queue.ack(tag, keeper)).toBe(true)
    expect(queue.ack(tag, keeper)).toBe(false)
    expect(queue.release(tag, keeper)).toBe(false)
    expect(queue.depth).toBe(0)
  })

  it('delays a message exactly until it is due', async () => {
    const { queue, clock } = setup()
    const keeper = new Keeper()
    queue.attach(keeper)
    queue.put(message('late'), 100)
    queue.put(message('early'), 50)
    queue.put(message('now'), 0)
    await clock.advance(49)
    // Other traffic must not cause an early delivery.
    queue.dispatch()
    expect(keeper.ids).toEqual(['now'])
    await clock.advance(1)
    expect(keeper.ids).toEqual(['now', 'early'])
    await clock.advance(49)
    expect(keeper.ids).toEqual(['now', 'early'])
    await clock.advance(1)
    expect(keeper.ids).toEqual(['now', 'early', 'late'])
    expect(clock.pending).toBe(0)
  })

  it('returns a message to its position, and does not count the return', () => {
    const { queue } = setup()
    const keeper = new Keeper(1)
    queue.attach(keeper)
    for (const id of ['a', 'b']) queue.put(message(id), 0)
    const { tag } = keeper.take('a')
    queue.release(tag, keeper)
    expect(keeper.handed).toMatchObject([{ message: { id: 'a' }, deliveryCount: 1 }])
  })

  it('counts deliveries whose consumer disappeared', () => {
    const { queue } = setup()
    const [gone, next] = [new Keeper(), new Keeper()]
    queue.attach(gone)
    for (const id of ['a', 'b']) queue.put(message(id), 0)
    queue.detach(gone)
    queue.attach(next)
    expect(next.handed.map(({ deliveryCount }) => deliveryCount)).toEqual([2, 2])
    expect(queue.ack(gone.handed[0]?.tag ?? 0, gone)).toBe(false)
    queue.detach(next)
    expect(queue.take(new Keeper())?.deliveryCount).toBe(3)
  })

  it('serves consumers in turn', () => {
    const { queue } = setup()
    const [one, other] = [new Keeper(), new Keeper()]
    queue.attach(one)
    queue.attach(other)
    for (const id of ['a', 'b', 'c', 'd']) queue.put(message(id), 0)
    expect([one.handed.length, other.handed.length]).toEqual([2, 2])
  })

  it('delivers one message of a lane at a time, and others in between', () => {
    const { queue } = setup()
    const keeper = new Keeper()
    queue.attach(keeper)
    for (const [id, lane] of [
      ['a1', 'a'],
      ['a2', 'a'],
      ['b1', 'b'],
      ['x', undefined],
    ] as const) {
      queue.put(message(id, lane), 0)
    }
    expect(keeper.ids).toEqual(['a1', 'b1', 'x'])
    queue.ack(keeper.take('a1').tag, keeper)
    expect(keeper.ids).toEqual(['b1', 'x', 'a2'])
    expect(queue.contents().length).toBe(3)
  })

  it('lets the lane of a removed consumer continue', () => {
    const { queue } = setup()
    const [gone, next] = [new Keeper(), new Keeper()]
    queue.attach(gone)
    for (const id of ['a1', 'a2']) queue.put(message(id, 'a'), 0)
    queue.detach(gone)
    queue.attach(next)
    expect(next.ids).toEqual(['a1'])
    queue.ack(next.take('a1').tag, next)
    expect(next.ids).toEqual(['a2'])
  })

  it('neither loses nor duplicates messages for any actions, and keeps each lane in order', async () => {
    const step = fc.oneof(
      fc.record({ kind: fc.constant('put' as const), lane: fc.nat(3), delay: fc.nat(5) }),
      fc.record({ kind: fc.constant('ack' as const), pick: fc.nat() }),
      fc.record({ kind: fc.constant('release' as const), pick: fc.nat() }),
      fc.constant({ kind: 'crash' as const }),
      fc.constant({ kind: 'wait' as const }),
    )
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
        const { queue, clock } = setup()
        let keeper = new Keeper(3)
        queue.attach(keeper)
        const sent: string[] = []
        const settled: string[] = []
        for (const one of steps) {
          if (one.kind === 'put') {
            const id = String(sent.length)
            sent.push(id)
            // Lane 0 means no lane. A delay in a lane would change the order on purpose.
            const lane = one.lane === 0 ? undefined : `lane-${one.lane}`
            queue.put(message(id, lane), lane === undefined ? one.delay : 0)
          } else if (one.kind === 'wait') await clock.advance(3)
          else if (one.kind === 'crash') {
            queue.detach(keeper)
            keeper = new Keeper(3)
            queue.attach(keeper)
          } else if (keeper.handed.length > 0) {
            const id = keeper.ids[one.pick % keeper.ids.length] ?? ''
            const { tag } = keeper.take(id)
            if (one.kind === 'ack' && queue.ack(tag, keeper)) settled.push(id)
            if (one.kind === 'release') queue.release(tag, keeper)
          }
          const there = queue.contents().map(({ id }) => id)
          expect(queue.depth).toBe(there.length)
          expect([...there, ...settled].map(Number).toSorted((a, b) => a - b)).toEqual(
            sent.map(Number),
          )
          expect(keeper.handed.length).toBeLessThanOrEqual(3)
        }
        const laneOf = new Map(queue.contents().map(({ id, lane }) => [id, lane]))
        const busy = keeper.ids.map((id) => laneOf.get(id)).filter((lane) => lane !== undefined)
        expect(new Set(busy).size).toBe(busy.length)
      }),
    )
  })
})
