import { describe, expect, it } from 'vitest'
import { delivery, events, ofType, unreachable, world, scripted } from './fixtures.ts'

describe('messages in order', () => {
  it('wait for the earlier ones of their lane, including retries', async () => {
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

  it('continue when the earlier one is given up', async () => {
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

  it('keep their order through a pause of the dependency', async () => {
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
        breaker: { trip: { kind: 'consecutive', failures: 1 }, minOpen: '10s', maxOpen: '10s' },
      },
    )
    for (let number = 0; number < 5; number++) send({}, { id: `a${number}`, lane: 'a' })
    await clock.advance('1m')
    isDown = false
    await clock.advance('5m')
    expect(handled).toEqual(['a0', 'a1', 'a2', 'a3', 'a4'])
  })
})

describe('lanes whose messages never pass', () => {
  const DOWN = { order: 'lane', retry: { maxAge: '1h' } } as const

  it.each([1, 2, 5])('are given up at the age limit: %d lanes', async (lanes) => {
    const { send, start, clock, deadLetters } = world()
    const behind: string[] = []
    let runs = 0
    await start(
      ({ id }) => {
        if (id.startsWith('behind')) return void behind.push(id)
        runs += 1
        throw unreachable()
      },
      { ...DOWN, breaker: {}, outage: {}, random: () => 0.5 },
    )
    for (let lane = 0; lane < lanes; lane++) {
      send({}, { id: `bad ${lane}`, lane: `${lane}` })
      send({}, { id: `behind ${lane}`, lane: `${lane}` })
    }
    await clock.advance('2h')
    expect([deadLetters(), behind.length]).toEqual([lanes, lanes])
    expect(runs).toBeLessThan(100 * lanes)
  })

  it('keep their failures while the dependency is isolated, and return when the consumer stops', async () => {
    const { clock, transport, start } = scripted()
    const seen: number[] = []
    const consumer = await start(
      (_, { runs }) => {
        seen.push(runs)
        throw unreachable()
      },
      { order: 'lane', breaker: {}, retry: { backoff: { kind: 'fixed', delay: '10s' } } },
    )
    transport.deliver(delivery('a'))
    await clock.settle()
    consumer.dependency.isolate()
    await clock.advance('1m')
    expect(consumer.stats()).toMatchObject({ isPaused: true, waiting: 1 })
    expect(transport.decisions).toEqual([])
    consumer.dependency.restore()
    await clock.settle()
    expect(seen).toEqual([0, 1])
    consumer.dependency.isolate()
    await clock.advance('1m')
    const stopped = consumer.stop()
    await clock.advance('30s')
    await stopped
    expect(transport.decisions).toMatchObject([{ decision: { kind: 'pause', reason: 'stopping' } }])
  })

  it('return messages that have not failed here while the dependency is isolated', async () => {
    const { clock, transport, start } = scripted()
    const consumer = await start(() => undefined, { order: 'lane', breaker: {} })
    consumer.dependency.isolate()
    transport.deliver(delivery('a'))
    await clock.settle()
    expect(transport.log.at(-1)).toBe('pause a')
  })
})

describe('a message suspected of crashing processes', () => {
  const suspect = (id: string) => delivery(id, { deliveryCount: 3 })
  const poison = { suspectDeliveries: 3, trials: 2 }

  it('runs alone: all others are returned first, and the broker has confirmed it', async () => {
    const { clock, transport, start } = scripted()
    const confirmations: (() => void)[] = []
    const pauseTakesEffect = transport.holdPause()
    transport.result = (_, decision) =>
      decision.kind === 'pause'
        ? new Promise((resolve) => {
            confirmations.push(() =>
              resolve({ kind: 'done', destination: 'returned', truncated: 0 }),
            )
          })
        : { kind: 'done', destination: 'settled', truncated: 0 }
    const ran: string[] = []
    const finish: (() => void)[] = []
    await start(
      ({ id }) => {
        ran.push(id)
        return new Promise<void>((resolve) => finish.push(resolve))
      },
      { poison },
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

  it('is followed by one delivery at a time, until one is not suspect', async () => {
    const { clock, transport, start } = scripted()
    const ran: string[] = []
    await start(({ id }) => void ran.push(id), {
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

  it('does not run while another delivery may still arrive', async () => {
    const { clock, transport, start } = scripted()
    const pauseTakesEffect = transport.holdPause()
    const ran: string[] = []
    await start(({ id }) => void ran.push(id), { poison })
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

  it('is quarantined when it did not survive its trials', async () => {
    const { clock, transport, start } = scripted()
    transport.result = () => ({ kind: 'done', destination: 'quarantine', truncated: 0 })
    await start(() => expect.unreachable(), { poison })
    transport.deliver(delivery('killer', { deliveryCount: 5 }))
    await clock.settle()
    expect(transport.decisions).toMatchObject([
      { decision: { kind: 'quarantine', reason: 'crash_loop', failure: { code: 'CRASH_LOOP' } } },
    ])
  })

  it('reports the reason of its pause, and resumes after a failure as well', async () => {
    const { clock, transport, start } = scripted()
    const seen = events()
    const consumer = await start(() => Promise.reject(new Error('no')), {
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
    const { clock, transport, start } = scripted()
    const ran: string[] = []
    const consumer = await start(
      ({ id }, { attempt }) => {
        ran.push(`${id} ${attempt}`)
        if (attempt === 1) throw unreachable()
      },
      { poison, retry: { backoff: { kind: 'fixed', delay: '500ms' } } },
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

  it('waits until a delivery that fails just before is returned, not retried here', async () => {
    const { clock, transport, start } = scripted()
    const finish: (() => void)[] = []
    await start(
      ({ id }) => {
        transport.log.push(`run ${id}`)
        if (id !== 'failing') return undefined
        return new Promise<void>((_, reject) => finish.push(() => reject(unreachable())))
      },
      {
        poison,
        // The success of the good message is recorded with the failure, and changes the limit.
        adaptiveConcurrency: {},
        retry: { backoff: { kind: 'fixed', delay: '500ms' } },
      },
    )
    transport.deliver(delivery('failing'), delivery('good'), suspect('suspect'))
    await clock.settle()
    finish[0]?.()
    await clock.settle()
    const lines = transport.log.filter((line) => / (failing|suspect)$/.test(line))
    expect(lines.slice(0, 3)).toEqual(['run failing', 'retryAt failing', 'run suspect'])
  })

  it('is returned when the consumer stops before its trial', async () => {
    const { clock, transport, start } = scripted()
    const pauseTakesEffect = transport.holdPause()
    const consumer = await start(() => expect.unreachable(), {
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
