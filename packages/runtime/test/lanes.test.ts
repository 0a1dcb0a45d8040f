import { describe, expect, it } from 'vitest'
import { consume } from '../src/index.ts'
import {
  delivery,
  events,
  ofType,
  PLAIN,
  ScriptedTransport,
  unreachable,
  world,
} from './fixtures.ts'

describe('messages in order', () => {
  it('wait for the earlier ones of their lane, retries included', async () => {
    const { send, start, clock, backlog } = world()
    const handled: string[] = []
    await start(
      ({ id }, { attempt }) => {
        if (id === 'a1' && attempt < 4) throw unreachable()
        handled.push(id)
      },
      { order: 'lane', retry: { backoff: { kind: 'fixed', delay: '30s' } } },
    )
    for (const id of ['a1', 'a2', 'b1', 'a3', 'b2']) send({}, { id, lane: id[0] ?? '' })
    await clock.settle()
    expect(handled).toEqual(['b1', 'b2'])
    await clock.advance('5m')
    expect(handled).toEqual(['b1', 'b2', 'a1', 'a2', 'a3'])
    expect(backlog()).toBe(0)
  })

  it('move on when the one before them is given up', async () => {
    const { send, start, clock, drain } = world()
    const handled: string[] = []
    await start(
      ({ id }) => {
        if (id === 'a1') throw unreachable()
        handled.push(id)
      },
      { order: 'lane', retry: { attempts: 2, backoff: { kind: 'fixed', delay: '2s' } } },
    )
    for (const id of ['a1', 'a2']) send({}, { id, lane: 'a' })
    await clock.advance('1m')
    expect(handled).toEqual(['a2'])
    expect(await drain()).toMatchObject([{ delivery: { id: 'a1' }, reason: 'attempts_exhausted' }])
  })

  it('of other lanes run while as many lanes as the concurrency wait for a retry', async () => {
    const { send, start, clock } = world()
    const handled: string[] = []
    await start(
      ({ id }, { attempt }) => {
        if (id !== 'c' && attempt === 1) throw unreachable()
        handled.push(id)
      },
      { order: 'lane', concurrency: 2, retry: { backoff: { kind: 'fixed', delay: '1h' } } },
    )
    for (const id of ['a', 'b', 'c']) send({}, { id, lane: id })
    await clock.advance('1s')
    expect(handled).toEqual(['c'])
  })

  it('keep their place through a pause of the dependency', async () => {
    const { send, start, clock } = world()
    const handled: string[] = []
    let isDown = true
    await start(
      ({ id }) => {
        if (isDown) throw unreachable()
        handled.push(id)
      },
      {
        order: 'lane',
        random: () => 0.5,
        breaker: { trip: { kind: 'consecutive', failures: 2 }, minOpen: '10s', maxOpen: '10s' },
      },
    )
    for (let number = 0; number < 5; number++) send({}, { id: `a${number}`, lane: 'a' })
    await clock.advance('1m')
    isDown = false
    await clock.advance('5m')
    expect(handled).toEqual(['a0', 'a1', 'a2', 'a3', 'a4'])
  })
})

describe('a message suspected of killing processes', () => {
  const suspect = (id: string) => delivery(id, { deliveryCount: 3 })
  const poison = { suspectDeliveries: 3, trials: 2 }

  it('runs alone: everything else is given back first, and the broker has it', async () => {
    const { clock } = world()
    const transport = new ScriptedTransport()
    const confirmations: (() => void)[] = []
    let pauseTakesEffect = () => {}
    transport.onPause = () =>
      new Promise((resolve) => {
        pauseTakesEffect = resolve
      })
    transport.answer = (_, decision) =>
      decision.kind === 'pause'
        ? new Promise((resolve) => {
            confirmations.push(() => resolve({ kind: 'done', place: 'returned', truncated: 0 }))
          })
        : { kind: 'done', place: 'settled', truncated: 0 }
    const ran: string[] = []
    const finish: (() => void)[] = []
    await consume(
      transport,
      ({ id }) => {
        ran.push(id)
        return new Promise<void>((resolve) => finish.push(resolve))
      },
      { ...PLAIN, clock, poison },
    )
    transport.deliver(delivery('first'), suspect('suspect'), delivery('later'), suspect('other'))
    await clock.settle()
    expect(ran).toEqual(['first'])
    finish[0]?.()
    await clock.settle()
    expect(ran).toEqual(['first'])
    pauseTakesEffect()
    await clock.settle()
    expect(transport.log.slice(-3)).toEqual(['pause', 'pause later', 'pause other'])
    expect(ran).toEqual(['first'])
    for (const confirm of confirmations) confirm()
    await clock.settle()
    expect(ran).toEqual(['first', 'suspect'])
    transport.deliver(delivery('straggler'))
    await clock.settle()
    expect(ran).toEqual(['first', 'suspect'])
    expect(transport.log.at(-1)).toBe('pause straggler')
    finish[1]?.()
    await clock.settle()
    expect(transport.log.slice(-3)).toEqual(['settle suspect', 'limit 1', 'resume'])
  })

  it('is followed by one at a time, until one is no suspect', async () => {
    const { clock } = world()
    const transport = new ScriptedTransport()
    const ran: string[] = []
    await consume(transport, ({ id }) => void ran.push(id), {
      ...PLAIN,
      clock,
      poison,
      concurrency: 7,
    })
    transport.deliver(suspect('suspect'))
    await clock.settle()
    expect(transport.log.slice(-2)).toEqual(['limit 1', 'resume'])
    transport.deliver(suspect('other'))
    await clock.settle()
    expect(transport.log.at(-1)).toBe('resume')
    expect(transport.log.filter((line) => line === 'limit 7')).toHaveLength(1)
    transport.deliver(delivery('innocent'))
    await clock.settle()
    expect(transport.log.slice(-2)).toContain('limit 7')
    expect(ran).toEqual(['suspect', 'other', 'innocent'])
  })

  it('does not run while something may still be on its way to us', async () => {
    const { clock } = world()
    const transport = new ScriptedTransport()
    let pauseTakesEffect = () => {}
    transport.onPause = () =>
      new Promise((resolve) => {
        pauseTakesEffect = resolve
      })
    const ran: string[] = []
    await consume(transport, ({ id }) => void ran.push(id), { ...PLAIN, clock, poison })
    transport.deliver(suspect('suspect'))
    await clock.advance('10s')
    transport.deliver(delivery('on its way'))
    await clock.advance('10s')
    expect(ran).toEqual([])
    expect(transport.log.at(-1)).toBe('pause on its way')
    pauseTakesEffect()
    await clock.settle()
    expect(ran).toEqual(['suspect'])
  })

  it('is taken out when it did not survive its trials', async () => {
    const { clock } = world()
    const transport = new ScriptedTransport()
    transport.answer = () => ({ kind: 'done', place: 'quarantine', truncated: 0 })
    await consume(transport, () => expect.unreachable(), { ...PLAIN, clock, poison })
    transport.deliver(delivery('killer', { deliveryCount: 5 }))
    await clock.settle()
    expect(transport.decisions).toMatchObject([
      { decision: { kind: 'quarantine', reason: 'crash_loop', failure: { code: 'CRASH_LOOP' } } },
    ])
  })

  it('says why it pauses, and resumes after a failure as well', async () => {
    const { clock } = world()
    const seen = events()
    const transport = new ScriptedTransport()
    const consumer = await consume(transport, () => Promise.reject(new Error('no')), {
      ...PLAIN,
      clock,
      poison,
      retry: { attempts: 1 },
    })
    transport.deliver(suspect('suspect'))
    await clock.settle()
    expect(ofType(seen, 'consumer_paused').map(({ reason }) => reason)).toEqual(['trial'])
    expect(consumer.stats().isPaused).toBe(false)
    expect(transport.log.slice(-3)).toEqual(['deadLetter suspect', 'limit 1', 'resume'])
  })

  it('stays alone through an inline retry', async () => {
    const { clock } = world()
    const transport = new ScriptedTransport()
    const ran: string[] = []
    const consumer = await consume(
      transport,
      ({ id }, { attempt }) => {
        ran.push(`${id} ${attempt}`)
        if (attempt === 1) throw unreachable()
      },
      { ...PLAIN, clock, poison, retry: { backoff: { kind: 'fixed', delay: '500ms' } } },
    )
    transport.deliver(suspect('suspect'))
    await clock.advance('100ms')
    expect(consumer.stats().isPaused).toBe(true)
    transport.deliver(delivery('other'))
    await clock.advance('100ms')
    expect(ran).toEqual(['suspect 1'])
    await clock.advance('500ms')
    expect(ran).toEqual(['suspect 1', 'suspect 2'])
    expect(consumer.stats().isPaused).toBe(false)
  })

  it('is given back when the consumer stops before its trial', async () => {
    const { clock } = world()
    const transport = new ScriptedTransport()
    let pauseTakesEffect = () => {}
    transport.onPause = () =>
      new Promise((resolve) => {
        pauseTakesEffect = resolve
      })
    const consumer = await consume(transport, () => expect.unreachable(), {
      ...PLAIN,
      clock,
      poison,
    })
    transport.deliver(suspect('suspect'))
    await clock.settle()
    const stopped = consumer.stop({ drain: '1s' })
    pauseTakesEffect()
    await clock.advance('2s')
    await stopped
    expect(transport.log.filter((line) => line === 'pause suspect').length).toBe(1)
    expect(transport.log.at(-1)).toBe('close')
  })
})
