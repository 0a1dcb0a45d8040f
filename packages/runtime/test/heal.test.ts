import { recordingDeadLetters, recordingSink } from '@redrive/testing'
import { describe, expect, it } from 'vitest'
import { onEvent, type RedriveEvent, type Sink } from '../src/index.ts'
import { event, failingSink, settled, world } from './emit.ts'

const REFUSED = Object.assign(new Error('no'), { status: 400 })
const EVERY_5_S = { schedule: '*/5 * * * * *' }

/** Opens the breaker of a sink that is down. */
async function open(emitter: { emit: (input: ReturnType<typeof event>) => Promise<unknown> }) {
  await Promise.all(Array.from({ length: 5 }, () => emitter.emit(event())))
}

describe('health checks', () => {
  it('run for unhealthy sinks only', async () => {
    const { sink: bad, fail } = failingSink({ batch: 1 })
    const good = recordingSink()
    const { emitter, clock } = world({ bad, good })
    fail()
    await open(emitter)
    const sent = bad.sizes.length
    await clock.advance('1m')
    expect(good.healthChecks).toBe(0)
    expect(bad.healthChecks).toBeGreaterThan(5)
    // After a minute of downtime a probe waits at least an eighth of a minute: the longer, the rarer.
    expect(bad.healthChecks).toBeLessThan(40)
    expect(bad.sizes.length).toBe(sent)
    expect(emitter.stats().sinks['bad']?.breaker).not.toBe('closed')
    await emitter.close()
    expect(clock.pending).toBe(0)
  })

  it('close the breaker without a single event', async () => {
    const { sink, fail, recover } = failingSink({ batch: 1 })
    const { emitter, clock } = world({ sink })
    fail()
    await open(emitter)
    recover()
    await clock.advance('10s')
    expect(emitter.stats().sinks['sink']?.breaker).toBe('closed')
    expect(sink.healthChecks).toBe(2)
    expect((await emitter.emit(event())).sinks['sink']).toEqual({ kind: 'delivered' })
  })

  it('do not run while an event is the probe', async () => {
    const { sink, fail } = failingSink({ batch: 1 })
    let isHanging = false
    const slow = {
      ...sink,
      send: (...args: Parameters<typeof sink.send>) =>
        isHanging ? new Promise<void>(() => undefined) : sink.send(...args),
      healthCheck: () => {
        checks += 1
        return Promise.resolve()
      },
    }
    let checks = 0
    const { emitter, clock } = world({ slow }, { policy: { breaker: { minOpen: '1500ms' } } })
    fail()
    await open(emitter)
    isHanging = true
    // Half-open after 1.2 to 1.8 s; the event comes first, the check after it.
    for (let step = 0; step < 18 && emitter.stats().sinks['slow']?.breaker === 'open'; step++) {
      await clock.advance('50ms')
    }
    while (emitter.stats().sinks['slow']?.breaker === 'open') await clock.advance('1ms')
    const before = checks
    void emitter.emit(event())
    await clock.advance('20s')
    expect(checks - before).toBe(0)
    expect(emitter.stats().sinks['slow']?.inFlight).toBe(1)
  })

  it('have the same timeout as other attempts', async () => {
    const { sink, fail } = failingSink({ batch: 1 })
    const hanging = { ...sink, healthCheck: () => new Promise<void>(() => undefined) }
    const { emitter, clock } = world({ hanging }, { policy: { timeout: '3s' } })
    fail()
    await open(emitter)
    await clock.advance('1m')
    expect(emitter.stats().sinks['hanging']?.breaker).not.toBe('closed')
    await emitter.close()
    expect(clock.pending).toBe(0)
  })
})

describe('a sink without a health check', () => {
  const without = (sink: Sink): Sink => ({
    name: sink.name,
    batch: sink.batch,
    send: (events, options) => sink.send(events, options),
    close: () => sink.close(),
  })

  it('is probed with a stored event, and the breaker stays open while it rejects them', async () => {
    const { sink, fail, recover } = failingSink({ batch: 1 })
    const { emitter, clock, store } = world(
      { sink: without(sink) },
      { autoReplay: { schedule: '0 0 1 1 *' } },
    )
    const phases: string[] = []
    const end = onEvent((one) => void (one.type === 'breaker_changed' && phases.push(one.to)))
    fail()
    await open(emitter)
    const sent = sink.sizes.length
    await clock.advance('20s')
    expect(sink.sizes.length).toBeGreaterThan(sent)
    expect(phases).not.toContain('closed')
    recover()
    await clock.advance('2m')
    end()
    expect(emitter.stats().sinks['sink']?.breaker).toBe('closed')
    expect((await store.stats()).count).toBe(0)
    expect(sink.healthChecks).toBe(0)
  })

  it('is probed with the next event when there is no automatic replay', async () => {
    const { sink, fail, recover } = failingSink({ batch: 1 })
    const { emitter, clock } = world({ sink: without(sink) })
    fail()
    await open(emitter)
    recover()
    await clock.advance('10s')
    expect(emitter.stats().sinks['sink']?.breaker).toBe('halfOpen')
    for (let count = 0; count < 2; count++) {
      expect((await emitter.emit(event())).sinks['sink']).toEqual({ kind: 'delivered' })
    }
    expect(emitter.stats().sinks['sink']?.breaker).toBe('closed')
  })
})

describe('automatic replay', () => {
  it('sends missed events as soon as a sink is healthy again, no faster than the budget allows', async () => {
    const { sink, fail, recover } = failingSink({ batch: 1 })
    const { emitter, clock, store } = world(
      { sink },
      {
        autoReplay: { schedule: '0 0 1 1 *' },
        policy: {
          retryBudget: {
            ratePerSecond: 20,
            floorPerSecond: 20,
            burst: 20,
            release: { batch: 20, interval: '1s' },
          },
        },
      },
    )
    fail()
    for (let count = 0; count < 300; count++) {
      void emitter.emit(event(`t${count}`))
      await clock.advance('10ms')
    }
    await settled()
    expect((await store.stats()).count).toBeGreaterThan(250)
    recover()
    const perSecond: number[] = []
    for (let second = 0; second < 40; second++) {
      const before = sink.events.length
      await clock.advance('1s')
      perSecond.push(sink.events.length - before)
    }
    expect((await store.stats()).count).toBe(0)
    expect(new Set(sink.events.map(({ type }) => type)).size).toBe(300)
    expect(Math.max(...perSecond)).toBeLessThanOrEqual(20)
  })

  it('runs on schedule for events that failed while the sink was healthy, up to the maximum age', async () => {
    const { sink, fail, recover } = failingSink({ batch: 1 })
    const { emitter, clock, store } = world(
      { sink },
      { policy: { breaker: 'off', outage: 'off' }, autoReplay: { ...EVERY_5_S, maxAge: '1m' } },
    )
    fail()
    const first = emitter.emit(event('old'))
    await clock.advance('2m')
    const second = emitter.emit(event('young'))
    await clock.advance('30s')
    await Promise.all([first, second])
    expect((await store.stats()).count).toBe(2)
    recover()
    await clock.advance('5s')
    expect(sink.events.map(({ type }) => type)).toEqual(['young'])
    expect((await store.stats()).count).toBe(1)
  })

  it('skips events that the sink rejected permanently', async () => {
    const { sink, fail, recover } = failingSink()
    const { emitter, clock, store } = world({ sink }, { autoReplay: EVERY_5_S })
    fail(REFUSED)
    await emitter.emit(event())
    recover()
    await clock.advance('1m')
    expect([sink.events.length, (await store.stats()).count]).toEqual([0, 1])
  })

  it('stops at the first failure, and keeps undelivered events', async () => {
    const { sink, fail } = failingSink({ batch: 1 })
    const published: RedriveEvent[] = []
    const end = onEvent((one) => published.push(one))
    const { emitter, clock, store } = world(
      { sink },
      {
        policy: { breaker: 'off', outage: 'off', retry: { attempts: 1 } },
        autoReplay: { schedule: '0 * * * *', batch: 10 },
      },
    )
    fail()
    await Promise.all(Array.from({ length: 50 }, () => emitter.emit(event())))
    const before = sink.sizes.length
    await clock.advance('61m')
    end()
    expect(sink.sizes.length - before).toBe(10)
    expect((await store.stats()).count).toBe(50)
    expect(published.findLast(({ type }) => type === 'replayed')).toMatchObject({
      source: 'sink',
      replayed: 0,
      failed: 10,
    })
  })

  it('does not run while the breaker is open', async () => {
    const { sink, fail } = failingSink({ batch: 1 })
    const { emitter, clock } = world({ sink }, { autoReplay: EVERY_5_S })
    fail()
    await open(emitter)
    const sent = sink.sizes.length
    const published: RedriveEvent[] = []
    const end = onEvent((one) => published.push(one))
    await clock.advance('1m')
    end()
    expect(sink.sizes.length).toBe(sent)
    expect(published.filter(({ type }) => type === 'replayed')).toEqual([])
  })

  it('takes its retries from the budget at any rate', async () => {
    const { sink, fail, recover } = failingSink({ batch: 1 })
    const budget = { ratePerSecond: 100, floorPerSecond: 2, burst: 2, ratio: 0 } as const
    const policy = {
      breaker: 'off',
      outage: 'off',
      retry: { attempts: 1 },
      retryBudget: budget,
    } as const
    const { emitter, clock } = world({ sink }, { policy, autoReplay: { schedule: '0 * * * *' } })
    fail()
    await Promise.all(Array.from({ length: 50 }, () => emitter.emit(event())))
    recover()
    await clock.advance('1h')
    await clock.advance('10s')
    expect(sink.events.length).toBeGreaterThan(15)
    expect(sink.events.length).toBeLessThanOrEqual(23)
  })

  it('stops when the emitter is closed during a replay', async () => {
    const { sink, fail, recover } = failingSink({ batch: 1 })
    const store = recordingDeadLetters()
    const { emitter, clock } = world(
      { sink },
      {
        store,
        autoReplay: EVERY_5_S,
        policy: {
          breaker: 'off',
          outage: 'off',
          retry: { attempts: 1 },
          retryBudget: { ratePerSecond: 1, floorPerSecond: 1, burst: 1, release: { batch: 1 } },
        },
      },
    )
    fail()
    await Promise.all(Array.from({ length: 50 }, () => emitter.emit(event())))
    recover()
    await clock.advance('7s')
    const arrived = sink.events.length
    expect(arrived).toBeGreaterThan(0)
    const closing = emitter.close()
    await clock.advance('11s')
    await closing
    expect(sink.events.length).toBeLessThan(50)
    expect(clock.pending).toBe(0)
  })
})

describe('manual replay', () => {
  it('sends one dead letter again and deletes it after delivery', async () => {
    const { sink, fail, recover } = failingSink()
    const { emitter, store, clock } = world({ sink })
    fail(REFUSED)
    const { id } = await emitter.emit(event())
    await expect(emitter.replay(`${id}/sink`)).rejects.toMatchObject({ code: 'REPLAY_FAILED' })
    expect(store.count).toBe(1)
    recover()
    await clock.advance('1s')
    expect(await emitter.replay(`${id}/sink`)).toBe(true)
    expect(await emitter.replay(`${id}/sink`)).toBe(false)
    expect(sink.events.map((one) => one.id)).toEqual([id])
    expect(await emitter.replayBatch({ limit: 10 })).toEqual({ replayed: 0, failed: 0 })
  })

  it('rejects when this emitter does not have the sink of a dead letter', async () => {
    const { sink, fail } = failingSink()
    const store = recordingDeadLetters()
    const { emitter } = world({ sink }, { store })
    fail(REFUSED)
    await emitter.emit(event())
    const other = world({ other: recordingSink() }, { store })
    await expect(other.emitter.replayBatch({ limit: 1 })).resolves.toEqual({
      replayed: 0,
      failed: 1,
    })
    await expect(other.emitter.replay(store.last?.id ?? '')).rejects.toThrow('has no sink "sink"')
  })
})

describe('cleanup', () => {
  it('removes entries older than the retention, on schedule', async () => {
    const { sink, fail } = failingSink()
    const { emitter, store, clock } = world(
      { sink },
      { cleanup: { schedule: '0 * * * *', retention: '90m' } },
    )
    fail(REFUSED)
    await emitter.emit(event('old'))
    await clock.advance('1h')
    await emitter.emit(event('young'))
    await clock.advance('1h')
    const { deadLetters } = await store.list({ limit: 10 })
    expect(deadLetters.map((one) => one.event.type)).toEqual(['young'])
  })
})
