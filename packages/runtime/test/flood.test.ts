import { describe, expect, it } from 'vitest'
import type { Receiver } from '../src/index.ts'
import { delivery, events, ofType, scripted, world } from './fixtures.ts'

const bad = (): never => {
  throw new RangeError('the amount is negative')
}
const TERMINAL = { retry: { attempts: 1 } } as const
const SLOW = { ...TERMINAL, flood: { burst: 5, perMinute: 6 } } as const

describe('a flood of similar dead letters', () => {
  it('is written at the rate of the policy, and no message runs twice', async () => {
    const { send, start, clock, deadLetters } = world()
    const seen = events()
    let runs = 0
    const consumer = await start(() => {
      runs += 1
      bad()
    }, SLOW)
    for (let count = 0; count < 10; count++) send({})
    await clock.settle()
    expect([runs, deadLetters()]).toEqual([10, 5])
    expect(consumer.stats()).toMatchObject({ running: 0, waiting: 0, settling: 5 })
    expect(ofType(seen, 'flood_detected')).toHaveLength(1)
    await clock.advance('9999ms')
    expect(deadLetters()).toBe(5)
    await clock.advance('1ms')
    expect(deadLetters()).toBe(6)
    await clock.advance('10s')
    expect(deadLetters()).toBe(7)
    await clock.advance('1h')
    expect([runs, deadLetters()]).toEqual([10, 10])
    expect(consumer.stats().settling).toBe(0)
    expect(ofType(seen, 'consumer_paused')).toEqual([])
  })

  it.each([
    ['before the good messages', (index: number) => index < 500],
    ['between the good messages', (index: number) => index % 10 === 1],
  ])('does not delay good messages when one in ten of 5,000 is malformed: %s', async (_, isBad) => {
    const takes = async (hasBad: boolean) => {
      const { send, start, clock } = world()
      let good = 0
      await start(
        async ({ body }) => {
          await new Promise<void>((resolve) => clock.after(10, resolve))
          if (body === 'bad') bad()
          good += 1
        },
        { ...TERMINAL, flood: {} },
      )
      const expected = hasBad ? 4_500 : 5_000
      for (let index = 0; index < 5_000; index++) send(hasBad && isBad(index) ? 'bad' : 'good')
      const begun = clock.now()
      while (good < expected && clock.now() - begun < 60_000) await clock.advance('100ms')
      return clock.now() - begun
    }
    expect(await takes(true)).toBeLessThanOrEqual((await takes(false)) * 1.1)
  })

  it('keeps room for the good messages in steps, and no more when all are written', async () => {
    const { clock, transport, start } = scripted()
    await start(bad, { ...TERMINAL, flood: { burst: 1, perMinute: 60 }, concurrency: 10 })
    transport.deliver(delivery('first'))
    for (let count = 0; count < 12; count++) transport.deliver(delivery(`m${count}`))
    await clock.advance('1m')
    const limits = transport.log.filter((line) => line.startsWith('limit'))
    expect(limits).toEqual(['limit 10', 'limit 30', 'limit 40', 'limit 30', 'limit 10'])
  })

  it('pauses the consumer when 500 wait and no other message passed', async () => {
    const { send, start, clock, backlog, deadLetters } = world()
    const seen = events()
    const consumer = await start(bad, { ...SLOW, concurrency: 1 })
    for (let count = 0; count < 600; count++) send({})
    await clock.settle()
    expect(consumer.stats()).toMatchObject({ isPaused: true, settling: 500 })
    expect([deadLetters(), backlog()]).toEqual([5, 595])
    expect(ofType(seen, 'consumer_paused')).toMatchObject([
      { reason: 'flood', until: clock.now() + 10_000 },
    ])
    await clock.advance('10s')
    expect(ofType(seen, 'consumer_resumed')).toHaveLength(1)
    expect(deadLetters()).toBe(6)
    await clock.advance('10m')
    expect(deadLetters()).toBe(5 + 6 * 10 + 1)
  })

  it('writes the oldest early when 500 wait and others pass', async () => {
    const { send, start, clock, deadLetters } = world()
    const seen = events()
    let good = 0
    await start(
      ({ body }) => {
        if (body === 'bad') bad()
        good += 1
      },
      { ...SLOW, concurrency: 10 },
    )
    for (let count = 0; count < 2_000; count++) {
      send('bad')
      send('good')
    }
    await clock.settle()
    expect(good).toBe(2_000)
    expect(ofType(seen, 'consumer_paused')).toEqual([])
    expect(deadLetters()).toBe(2_000 - 499)
  })

  it('is written immediately when the consumer stops, also by handlers that end later', async () => {
    const { clock, transport, start } = scripted()
    const ends: (() => void)[] = []
    const consumer = await start(
      ({ id }) =>
        id === 'late'
          ? new Promise((_, reject) => ends.push(() => reject(new RangeError('late'))))
          : bad(),
      { ...TERMINAL, flood: { burst: 1, perMinute: 1 } },
    )
    transport.deliver(delivery('a'), delivery('b'), delivery('late'))
    await clock.settle()
    expect(transport.log).toContain('deadLetter a')
    expect(transport.log).not.toContain('deadLetter b')
    const stopped = consumer.stop()
    await clock.settle()
    expect(transport.log).toContain('deadLetter b')
    ends[0]?.()
    await clock.settle()
    await stopped
    expect(transport.log.slice(-2)).toEqual(['deadLetter late', 'close'])
  })

  it('is forgotten where the broker took the delivery back', async () => {
    const { clock, transport, start } = scripted()
    const consumer = await start(bad, { ...TERMINAL, flood: { burst: 1, perMinute: 1 } })
    const lost = delivery('b')
    transport.deliver(delivery('a'), lost, delivery('c'))
    await clock.settle()
    expect(consumer.stats().settling).toBe(2)
    transport.receiver?.lost(lost)
    await clock.settle()
    expect(consumer.stats().settling).toBe(1)
    await clock.advance('1h')
    expect(transport.log.filter((line) => line.startsWith('deadLetter'))).toEqual([
      'deadLetter a',
      'deadLetter c',
    ])
  })

  it('is no crash when the connection is lost again and again', async () => {
    const { send, start, clock, broker, quarantined } = world()
    const seen = events()
    await start(bad, { ...TERMINAL, flood: { burst: 1, perMinute: 1 }, poison: {} })
    for (let count = 0; count < 6; count++) send({})
    await clock.settle()
    for (let times = 0; times < 7; times++) {
      broker.restart()
      await clock.settle()
    }
    expect(ofType(seen, 'consumer_paused').filter(({ reason }) => reason === 'trial')).toEqual([])
    expect(quarantined()).toBe(0)
  })

  it('waits for at most 15 minutes', async () => {
    const { send, start, clock, deadLetters } = world()
    await start(bad, { ...TERMINAL, flood: { burst: 1, perMinute: 1 } })
    for (let count = 0; count < 100; count++) send({})
    await clock.advance('15m')
    expect(deadLetters()).toBe(100)
  })

  it('leaves no timer when the consumer does not start', async () => {
    const { clock, transport, start } = scripted()
    const receive = async (receiver: Receiver) => {
      for (const id of ['a', 'b', 'c']) receiver.deliver(delivery(id))
      await clock.settle()
      throw new Error('no queue')
    }
    Object.assign(transport, { receive })
    await expect(start(bad, { ...TERMINAL, flood: { burst: 1, perMinute: 1 } })).rejects.toThrow(
      'no queue',
    )
    await clock.advance('1h')
    expect(transport.log.slice(-1)).toEqual(['close'])
  })

  it('is written immediately when a suspect is about to run alone', async () => {
    const { clock, transport, start } = scripted()
    const finish: (() => void)[] = []
    await start(
      ({ id }) => {
        transport.log.push(`run ${id}`)
        if (id === 'first') bad()
        if (id !== 'late') return undefined
        return new Promise<void>((resolve) => finish.push(resolve)).then(bad)
      },
      {
        ...TERMINAL,
        flood: { burst: 1, perMinute: 1 },
        poison: { suspectDeliveries: 3, trials: 2 },
        adaptiveConcurrency: {},
      },
    )
    const suspect = delivery('suspect', { deliveryCount: 3 })
    transport.deliver(delivery('first'), delivery('late'), delivery('good'), suspect)
    await clock.settle()
    finish[0]?.()
    await clock.settle()
    const lines = transport.log.filter((line) => / (late|suspect)$/.test(line))
    expect(lines.slice(0, 3)).toEqual(['run late', 'deadLetter late', 'run suspect'])
  })

  it('is written before a suspect runs alone', async () => {
    const { clock, transport, start } = scripted()
    await start(
      ({ id }) => {
        transport.log.push(`run ${id}`)
        if (id !== 'suspect') bad()
      },
      {
        ...TERMINAL,
        flood: { burst: 1, perMinute: 1 },
        poison: { suspectDeliveries: 3, trials: 2 },
      },
    )
    transport.deliver(delivery('a'), delivery('b'))
    await clock.settle()
    transport.deliver(delivery('suspect', { deliveryCount: 3 }))
    await clock.settle()
    const lines = transport.log.filter((line) => /^(run|deadLetter)/.test(line))
    expect(lines).toEqual(['run a', 'run b', 'deadLetter a', 'deadLetter b', 'run suspect'])
  })
})
