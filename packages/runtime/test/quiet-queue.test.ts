import { business, seededRandom } from '@redrive/core'
import { MemoryBroker, memory, memorySource, send } from '@redrive/memory'
import { FakeClock, memoryInbox, type MemoryTransaction } from '@redrive/testing'
import { describe, expect, it } from 'vitest'
import {
  type AttemptContext,
  consume,
  type Handler,
  type Inbox,
  type Message,
} from '../src/index.ts'
import { QUEUE } from './fixtures.ts'

/** A queue with the default policy, in virtual time. */
function quietQueue() {
  const clock = new FakeClock()
  const broker = new MemoryBroker({ clock })
  return {
    clock,
    put: (id: string, key = id) =>
      send(broker, QUEUE, { id: key }, { id, headers: { 'redrive-key': key } }),
    start: (handler: Handler<{ id: string }, undefined>) =>
      consume(memory({ broker, queue: QUEUE }), handler, {
        classify: [business({ code: 'CARD_DECLINED' })],
        logger: 'off',
        clock,
        random: seededRandom(1),
      }),
    startWithInbox: (
      handler: Handler<{ id: string }, MemoryTransaction>,
      inbox: Inbox<MemoryTransaction>,
    ) =>
      consume(memory({ broker, queue: QUEUE }), handler, {
        ...{ inbox, clock, logger: 'off', random: seededRandom(1) },
      }),
    deadLetters: async () => {
      const source = memorySource({ broker, queue: QUEUE })
      const { deadLetters } = await source.drain({ limit: 100 })
      await source.close()
      return deadLetters
    },
  }
}

const deadHost = () =>
  Object.assign(new Error('getaddrinfo ENOTFOUND crm.internal'), { code: 'ENOTFOUND' })

describe('a quiet queue with the default policy', () => {
  it('loses no good message to an outage whose error no rule recognises', async () => {
    const { clock, put, start, deadLetters } = quietQueue()
    const handled: string[] = []
    let isDown = true
    await start(({ body }) => {
      if (isDown) throw new Error('Could not load customer')
      handled.push(body.id)
    })
    for (const number of [1, 2, 3, 4, 5, 6]) {
      put(`m${number}`)
      await clock.advance('6s')
    }
    isDown = false
    await clock.advance('10m')
    expect(await deadLetters()).toEqual([])
    expect(handled.toSorted()).toEqual(['m1', 'm2', 'm3', 'm4', 'm5', 'm6'])
  })

  it('gives up a message to a dead host within about an hour, and shows how often it ran', async () => {
    const { clock, put, start, deadLetters } = quietQueue()
    const runs: number[] = []
    await start(({ body }, context) => {
      if (body.id !== 'bad') return
      runs.push(context.runs)
      throw deadHost()
    })
    put('good before')
    await clock.advance('1h')
    put('bad')
    await clock.advance('59m')
    expect(await deadLetters()).toEqual([])
    await clock.advance('6m')
    const [letter] = await deadLetters()
    expect(letter).toMatchObject({ reason: 'unproven', delivery: { id: 'bad' } })
    expect(letter?.delivery.cycle.runs).toBe(runs.length)
    expect(letter?.delivery.cycle.attempts).toBeLessThan(5)
    expect(runs).toEqual(runs.map((_, index) => index))
    expect(runs.length).toBeGreaterThan(10)
    expect(runs.length).toBeLessThanOrEqual(25)
  })

  it('loses no good message to a short outage after a long wait that the dependency requested', async () => {
    const { clock, put, start, deadLetters } = quietQueue()
    let runs = 0
    let upAt = Number.POSITIVE_INFINITY
    let isHandled = false
    await start(() => {
      runs += 1
      const headers = { 'retry-after': '7200' }
      if (runs <= 2) throw Object.assign(new Error('Too Many Requests'), { status: 429, headers })
      if (runs === 3) upAt = clock.now() + 30_000
      if (clock.now() < upAt) throw deadHost()
      isHandled = true
    })
    put('limited')
    await clock.advance('12h')
    expect(await deadLetters()).toEqual([])
    expect(isHandled).toBe(true)
  })

  it('gives up a message whose dependency always requests a long wait', async () => {
    const { clock, put, start, deadLetters } = quietQueue()
    await start(() => {
      const headers = { 'retry-after': '7200' }
      throw Object.assign(new Error('Too Many Requests'), { status: 429, headers })
    })
    put('limited')
    await clock.advance('46h')
    expect(await deadLetters()).toMatchObject([{ reason: 'unproven' }])
  })

  it('does not pause for one message that fails again and again', async () => {
    const { clock, put, start } = quietQueue()
    const handled: string[] = []
    const consumer = await start(({ body }) => {
      if (body.id === 'bad') throw deadHost()
      handled.push(body.id)
    })
    put('bad')
    await clock.advance('2m')
    expect(consumer.stats()).toMatchObject({ breaker: 'closed', isPaused: false })
    put('good')
    await clock.settle()
    expect(handled).toEqual(['good'])
  })

  it('takes no skipped duplicate for proof that the dependency works', async () => {
    const { clock, put, startWithInbox, deadLetters } = quietQueue()
    let isDown = false
    const consumer = await startWithInbox(() => {
      if (isDown) throw new Error('Could not load customer')
    }, memoryInbox())
    put('first', 'order-1')
    await clock.settle()
    isDown = true
    put('second', 'order-2')
    for (let copy = 1; copy <= 60; copy++) {
      put(`copy ${copy}`, 'order-1')
      await clock.advance('20s')
    }
    expect(await deadLetters()).toEqual([])
    expect(consumer.stats()).toMatchObject({ handled: 61, breaker: 'closed' })
  })

  it.each(['no inbox', 'an inbox'])(
    'takes no message that its handler skips for proof that the dependency works: %s',
    async (kind) => {
      const { clock, put, start, startWithInbox, deadLetters } = quietQueue()
      const handler = (
        { body }: Message<{ id: string }>,
        context: Pick<AttemptContext, 'skip'>,
      ) => {
        if (body.id.startsWith('other type')) return context.skip()
        throw deadHost()
      }
      const consumer = await (kind === 'no inbox'
        ? start(handler)
        : startWithInbox(handler, memoryInbox()))
      for (let bad = 1; bad <= 5; bad++) put(`needs the service ${bad}`)
      for (let other = 1; other <= 60; other++) {
        put(`other type ${other}`)
        await clock.advance('20s')
      }
      expect(await deadLetters()).toEqual([])
      expect(consumer.stats().breaker).not.toBe('closed')
    },
  )

  it.each(['a business rule', 'an error after skip()'])(
    'takes no message that its handler rejects before a call for proof that the dependency works: %s',
    async (kind) => {
      const { clock, put, start, deadLetters } = quietQueue()
      let isDown = true
      const consumer = await start(({ body }, { skip }) => {
        if (body.id.startsWith('rejected')) {
          if (kind !== 'a business rule') skip()
          throw Object.assign(new Error('amount is negative'), {
            code: kind === 'a business rule' ? 'CARD_DECLINED' : 'EINVAL',
            status: 400,
          })
        }
        if (isDown) throw deadHost()
      })
      for (let good = 1; good <= 5; good++) put(`good ${good}`)
      for (let rejected = 1; rejected <= 60; rejected++) {
        put(`rejected ${rejected}`)
        await clock.advance('20s')
      }
      expect(consumer.stats()).toMatchObject({ handled: 0 })
      isDown = false
      await clock.advance('10m')
      expect(consumer.stats()).toMatchObject({ handled: 5, breaker: 'closed' })
      const reasons = (await deadLetters()).map(({ delivery }) => delivery.id.split(' ')[0])
      expect(reasons).toEqual(Array(60).fill('rejected'))
    },
  )

  it('gives up five messages to a dead host and does not delay the good ones between them', async () => {
    const { clock, put, start, deadLetters } = quietQueue()
    const runs = new Map<string, number>()
    const waiting = new Set<string>()
    await start(({ body: { id } }) => {
      waiting.delete(id)
      if (!id.startsWith('bad')) return
      runs.set(id, (runs.get(id) ?? 0) + 1)
      throw deadHost()
    })
    for (let bad = 1; bad <= 5; bad++) put(`bad ${bad}`)
    for (let good = 1; good <= 20; good++) {
      waiting.add(`good ${good}`)
      put(`good ${good}`)
      await clock.advance('1m')
      expect([...waiting]).toEqual([])
    }
    expect((await deadLetters()).map(({ reason }) => reason)).toEqual(
      Array(5).fill('attempts_exhausted'),
    )
    expect(Math.max(...runs.values())).toBeLessThanOrEqual(30)
  })
})
