import { consume, dependency as dependencyNamed, Dependency, onEvent } from '../src/index.ts'
import { MemoryBroker, memory, send as sendTo } from '@redrive/memory'
import { FakeClock } from '@redrive/testing'
import { describe, expect, it, onTestFinished } from 'vitest'
import { events, never, ofType, PLAIN, unreachable, world } from './fixtures.ts'

const BREAKER = {
  trip: { kind: 'consecutive', failures: 3 },
  minOpen: '10s',
  maxOpen: '10s',
  successes: 2,
} as const

/** No jitter: the breaker stays open exactly as long as configured. */
const random = () => 0.5

describe('a consumer whose dependency is down', () => {
  it('pauses, probes one at a time, and continues when the probes succeed', async () => {
    const { send, start, clock, backlog, deadLetters } = world()
    const seen = events()
    let isDown = true
    let calls = 0
    const consumer = await start(
      () => {
        calls += 1
        if (isDown) throw unreachable()
      },
      {
        breaker: BREAKER,
        random,
        concurrency: 1,
        retry: { attempts: 2, backoff: { kind: 'fixed', delay: '1s' } },
      },
    )
    for (let count = 0; count < 8; count++) send({})
    await clock.settle()
    expect(calls).toBe(3)
    expect(consumer.stats()).toMatchObject({ breaker: 'open', isPaused: true, concurrencyLimit: 0 })
    await clock.advance('9999ms')
    expect(calls).toBe(3)
    await clock.advance('1ms')
    expect(calls).toBe(4)
    await clock.advance('9999ms')
    expect(calls).toBe(4)
    isDown = false
    await clock.advance('2s')
    expect(consumer.stats()).toMatchObject({ breaker: 'closed', isPaused: false })
    await clock.advance('20s')
    expect([backlog(), deadLetters()]).toEqual([0, 0])
    expect(ofType(seen, 'breaker_changed').map(({ from, to }) => `${from} ${to}`)).toEqual([
      'closed open',
      'halfOpen open',
      'halfOpen closed',
    ])
    expect(
      ofType(seen, 'consumer_paused').every(({ reason }) => reason === 'dependency_unhealthy'),
    ).toBe(true)
  })

  it('reports the cause before the decision', async () => {
    const { send, start, clock } = world()
    const seen = events()
    await start(() => Promise.reject(unreachable()), {
      breaker: BREAKER,
      random,
      concurrency: 1,
      retry: { maxInlineDelay: '1m', backoff: { kind: 'fixed', delay: '1s' } },
    })
    for (let count = 0; count < 3; count++) send({})
    await clock.settle()
    const types = seen.map(({ type }) => type)
    expect(types.indexOf('attempt_failed')).toBeLessThan(types.indexOf('inline_retry'))
    expect(types.indexOf('breaker_changed')).toBeLessThan(types.indexOf('consumer_paused'))
    expect(types).toEqual(expect.arrayContaining(['inline_retry', 'breaker_changed']))
  })

  it('never has more than its probes in flight while half-open', async () => {
    const { send, start, clock } = world()
    let isDown = true
    let running = 0
    let most = 0
    const finish: (() => void)[] = []
    await start(
      async () => {
        if (isDown) throw unreachable()
        running += 1
        most = Math.max(most, running)
        await new Promise<void>((resolve) => finish.push(resolve))
        running -= 1
      },
      { breaker: { ...BREAKER, successes: 3 }, random, concurrency: 10 },
    )
    for (let count = 0; count < 20; count++) send({})
    await clock.settle()
    isDown = false
    await clock.advance('10s')
    for (let probe = 1; probe < 3; probe++) {
      expect([running, most]).toEqual([1, 1])
      finish.shift()?.()
      await clock.settle()
    }
    finish.shift()?.()
    await clock.settle()
    expect(most).toBeGreaterThan(1)
  })

  it('does not count failures of that time against the messages', async () => {
    const { send, start, clock, deadLetters } = world()
    let isDown = true
    const attempts: number[] = []
    await start(
      (_, { attempt }) => {
        attempts.push(attempt)
        if (isDown) throw unreachable()
      },
      {
        breaker: BREAKER,
        random,
        concurrency: 1,
        retry: { attempts: 2, backoff: { kind: 'fixed', delay: '1s' } },
      },
    )
    for (let count = 0; count < 4; count++) send({})
    await clock.advance('5m')
    expect(deadLetters()).toBe(0)
    expect(Math.max(...attempts)).toBeLessThanOrEqual(2)
    isDown = false
    await clock.advance('1m')
    expect(deadLetters()).toBe(0)
  })
})

describe('a dependency', () => {
  const failing = (state: { isDown: boolean; calls: number }) => () => {
    state.calls += 1
    if (state.isDown) throw unreachable()
  }

  it('shared by two consumers pauses both when one of them finds it down', async () => {
    const [one, other] = [world(), world()]
    const shared = new Dependency('payments')
    const state = { isDown: true, calls: 0 }
    const retry = { backoff: { kind: 'fixed', delay: '5s' } } as const
    const options = { breaker: BREAKER, random, concurrency: 1, dependency: shared, retry }
    const first = await one.start(failing(state), options)
    const second = await other.start(failing(state), { ...options })
    for (let count = 0; count < 3; count++) one.send({})
    await one.clock.settle()
    expect([first.stats().breaker, second.stats().breaker]).toEqual(['open', 'open'])
    other.send({})
    await other.clock.settle()
    expect(state.calls).toBe(3)
    expect(second.stats().isPaused).toBe(true)
  })

  it('is the same for the same name, and a separate one without a name', async () => {
    const [one, other] = [world(), world()]
    const first = await one.start(() => undefined, { dependency: 'ledger' })
    const second = await other.start(() => undefined, { dependency: 'ledger' })
    const third = await other.start(() => undefined)
    expect(first.dependency).toBe(second.dependency)
    expect(first.dependency).toBe(dependencyNamed('ledger'))
    expect(third.dependency).not.toBe(second.dependency)
  })

  it('counts the failures of all its consumers in one window', async () => {
    const [one, other] = [world(), world()]
    const shared = new Dependency('stock')
    const options = { dependency: shared, outage: { failures: 100 } }
    const state = { isDown: true, calls: 0 }
    await one.start(failing(state), options)
    await other.start(failing(state), options)
    for (const place of [one, other]) {
      for (let count = 0; count < 3; count++) place.send({})
    }
    await one.clock.settle()
    expect(state.calls).toBe(6)
    expect(shared.outage.now.failed).toHaveLength(6)
  })

  it('refuses a consumer with other settings, and accepts it when the first has stopped', async () => {
    const [one, other] = [world(), world()]
    const shared = new Dependency('stock')
    const first = await one.start(() => undefined, {
      dependency: shared,
      breaker: BREAKER,
      outage: { window: '1m' },
    })
    const options = {
      dependency: shared,
      breaker: { ...BREAKER, trip: { kind: 'ratio' }, minOpen: '5s', probes: 2 },
      outage: { window: '30s' },
    } as const
    await expect(other.start(() => undefined, options)).rejects.toMatchObject({
      code: 'POLICY_INVALID',
      problems: [
        'dependency: "stock" is shared with the consumer of "orders", which has other settings: breaker.trip.kind is \'consecutive\' there and \'ratio\' here, breaker.minOpen is 10s there and 5s here, breaker.probes is 1 there and 2 here, outage.window is 1m there and 30s here; use the same settings in all consumers of a dependency, or another dependency',
      ],
    })
    await other.start(() => undefined, { dependency: shared, breaker: 'off', outage: 'off' })
    await first.stop()
    await other.start(() => undefined, options)
  })

  it('gets one probe at a time from all its consumers, and each consumer probes in turn', async () => {
    const clock = new FakeClock()
    const broker = new MemoryBroker({ clock })
    const queues = Array.from({ length: 20 }, (_, number) => `orders-${number}`)
    const shared = new Dependency('payments')
    const state = { isDown: true, running: 0, most: 0 }
    const probed: string[] = []
    for (const queue of queues) {
      const handler = async () => {
        probed.push(queue)
        state.running += 1
        state.most = Math.max(state.most, state.running)
        await new Promise<void>((resolve) => clock.after(500, resolve))
        state.running -= 1
        if (state.isDown) throw unreachable()
      }
      const options = { ...PLAIN, breaker: BREAKER, dependency: shared, clock, random }
      await consume(memory({ broker, queue }), handler, { ...options, concurrency: 1 })
      for (let count = 0; count < 5; count++) sendTo(broker, queue, {})
    }
    await clock.advance('5s')
    expect(shared.breaker.phase).toBe('open')
    state.most = 0
    probed.length = 0
    await clock.advance('5m')
    expect(state.most).toBe(1)
    expect(new Set(probed).size).toBe(20)
    // One probe in each half-open phase: 10 s open and 0.5 s of the probe.
    expect(probed.length).toBe(29)
    state.isDown = false
    await clock.advance('10m')
    expect(shared.breaker.phase).toBe('closed')
    expect(state.most).toBe(20)
    expect(queues.filter((queue) => broker.contents(queue).length > 0)).toEqual([])
  })

  it('gets the next probe when a handler does not end', async () => {
    const [one, other] = [world(), world()]
    const { clock } = one
    const shared = new Dependency('payments')
    const options = { ...PLAIN, breaker: BREAKER, dependency: shared, clock, random }
    let isDown = true
    const failOrHang = () => (isDown ? Promise.reject(unreachable()) : never())
    const hanging = await consume(one.transport(), failOrHang, {
      ...options,
      timeout: '20s',
      grace: '5s',
    })
    let calls = 0
    for (let count = 0; count < 3; count++) one.send({})
    await clock.settle()
    expect(shared.breaker.phase).toBe('open')
    isDown = false
    await clock.advance('11s')
    expect(hanging.stats().running).toBe(1)
    await consume(other.transport(), () => void (calls += 1), options)
    for (let count = 0; count < 3; count++) other.send({})
    await clock.advance('18s')
    expect(calls).toBe(0)
    await clock.advance('10m')
    expect(calls).toBe(3)
  })

  it('frees the probe of a consumer that stopped', async () => {
    const [one, other] = [world(), world()]
    const { clock } = one
    const shared = new Dependency('payments')
    const options = { ...PLAIN, breaker: BREAKER, dependency: shared, clock, random }
    let isDown = true
    const failOrHang = () => (isDown ? Promise.reject(unreachable()) : never())
    const hanging = await consume(one.transport(), failOrHang, { ...options, grace: '5m' })
    for (let count = 0; count < 3; count++) one.send({})
    await clock.settle()
    isDown = false
    await clock.advance('11s')
    const stopped = hanging.stop({ drain: '1s' })
    await clock.advance('2s')
    await stopped
    let calls = 0
    await consume(other.transport(), () => void (calls += 1), options)
    for (let count = 0; count < 3; count++) other.send({})
    await clock.advance('1m')
    expect(calls).toBe(3)
  })

  it('can be isolated and restored manually', async () => {
    const { send, start, clock, backlog } = world()
    const state = { isDown: false, calls: 0 }
    const consumer = await start(failing(state), { breaker: BREAKER })
    consumer.dependency.isolate()
    send({})
    await clock.advance('1h')
    expect([state.calls, backlog()]).toEqual([0, 1])
    expect(consumer.stats()).toMatchObject({ breaker: 'isolated', isPaused: true })
    consumer.dependency.restore()
    await clock.settle()
    expect([state.calls, backlog()]).toEqual([1, 0])
    expect(consumer.stats()).toMatchObject({ breaker: 'closed', isPaused: false })
  })

  it('stays isolated when a listener isolates it during a failure', async () => {
    const { send, start, clock } = world()
    const consumer = await start(
      () => {
        throw new Error('no')
      },
      { breaker: {}, retry: { attempts: 1 } },
    )
    onTestFinished(
      onEvent(({ type }) => {
        if (type === 'attempt_failed') consumer.dependency.isolate()
      }),
    )
    send({})
    await clock.settle()
    expect(consumer.stats()).toMatchObject({ breaker: 'isolated', isPaused: true })
  })

  it('that is isolated before the consumer starts pauses it from the first message on', async () => {
    const { send, start, clock } = world()
    const isolated = new Dependency('search')
    isolated.isolate()
    const state = { isDown: false, calls: 0 }
    send({})
    await start(failing(state), { dependency: isolated })
    await clock.settle()
    expect(state.calls).toBe(0)
    isolated.restore()
    await clock.settle()
    expect(state.calls).toBe(1)
  })

  it('is released by a consumer that stopped', async () => {
    const { start, clock } = world()
    const consumer = await start(() => undefined)
    await consumer.stop()
    const until = clock.now() + 60_000
    const open = {
      phase: 'open',
      since: clock.now(),
      until,
      successes: 0,
      suspects: [],
      freshAt: 0,
    } as const
    consumer.dependency.learn(open, consumer.dependency.outage)
    expect(clock.pending).toBe(0)
  })
})
