import { noDeadLetters, recordingDeadLetters, recordingSink } from '@redrive/testing'
import { describe, expect, it } from 'vitest'
import { nonFailing } from '../src/index.ts'
import { event, failingSink, settled, world } from './emit.ts'

const busy = (retryAfter: string) =>
  Object.assign(new Error('slow down'), { status: 429, headers: { 'retry-after': retryAfter } })

describe('the attempts of an event', () => {
  it('are at most retry.attempts, also when many events fail together', async () => {
    const { sink, fail } = failingSink({ batch: 1 })
    const { emitter, clock } = world({ sink }, { policy: { breaker: 'off' } })
    fail()
    const emitted = Array.from({ length: 20 }, (_, index) => emitter.emit(event(`t${index}`)))
    await clock.advance('25s')
    const results = await Promise.all(emitted)
    expect(results.map(({ sinks }) => sinks['sink'])).toEqual(
      results.map(() => ({ kind: 'stored', reason: 'attempts_exhausted' })),
    )
    expect(sink.sizes.length).toBe(60)
  })

  it('are at most retry.attempts, also when the policy waits for the breaker', async () => {
    const { sink, fail } = failingSink({ batch: 1 })
    const policy = { onBreakerOpen: 'pause', retry: { attempts: 2 } } as const
    const { emitter, clock } = world({ sink }, { policy, maxWait: '1d' })
    fail()
    for (let count = 0; count < 10; count++) void emitter.emit(event(`t${count}`))
    await clock.advance('1h')
    expect(sink.sizes.length).toBeLessThanOrEqual(20)
  })
})

describe('maxWait', () => {
  it('stores an event when the sink asks to retry later than that, without waiting', async () => {
    const { sink, fail } = failingSink()
    const { emitter, store } = world({ sink })
    fail(busy('3600'))
    const { sinks } = await emitter.emit(event())
    expect(sinks['sink']).toEqual({ kind: 'stored', reason: 'overdue' })
    expect(store.last).toMatchObject({ reason: 'overdue', failure: { code: 'HTTP 429' } })
    expect(store.last?.cycle.history.length).toBe(1)
  })

  it('waits for a Retry-After that is shorter', async () => {
    const { sink, fail, recover } = failingSink()
    const { emitter, clock } = world({ sink })
    fail(busy('20'))
    const emitted = emitter.emit(event())
    await settled()
    recover()
    await clock.advance('29s')
    expect((await emitted).sinks['sink']).toEqual({ kind: 'delivered' })
  })

  it('stores events that are queued, being sent and waiting for room, and delivers the events that are not late', async () => {
    const sink = recordingSink({ batch: 1, onSend: () => new Promise(() => undefined) })
    const { emitter, clock, store } = world(
      { sink },
      { policy: { timeout: '1h' }, maxWait: '5s', queue: { maxEvents: 30, onFull: 'wait' } },
    )
    const early = Array.from({ length: 40 }, (_, index) => emitter.emit(event(`t${index}`)))
    await clock.advance('4900ms')
    expect(store.count).toBe(0)
    await clock.advance('200ms')
    const results = await Promise.all(early)
    expect(results.map(({ sinks }) => sinks['sink']?.kind)).toEqual(results.map(() => 'stored'))
    expect(store.count).toBe(40)
    await emitter.close({ drain: '1ms' })
    expect(clock.pending).toBe(0)
  })

  it('does not count an attempt that it aborted against the sink', async () => {
    const sink = recordingSink({ batch: 1, onSend: () => new Promise(() => undefined) })
    const { emitter, clock } = world({ sink }, { maxWait: '5s' })
    for (let step = 0; step < 8; step++) {
      const first = emitter.emit(event('first'))
      await clock.advance('5100ms')
      await first
    }
    expect(emitter.stats().sinks['sink']).toMatchObject({ stored: 8, lost: 0, inFlight: 0 })
  })

  it('leaves no timer behind when the sink has accepted everything', async () => {
    const { emitter, clock } = world({ sink: recordingSink() })
    await emitter.emit(event())
    expect(clock.pending).toBe(0)
  })

  it('limits how long a non-failing job waits for a store that hangs', async () => {
    const store = { ...noDeadLetters(), save: () => new Promise<void>(() => undefined) }
    const { emitter, clock } = world(
      { sink: recordingSink({ onSend: () => new Promise(() => undefined) }) },
      { store, queue: { maxEvents: 1, onFull: 'store' }, maxWait: '2s' },
    )
    const emit = () => nonFailing(() => emitter.emit(event()))
    for (let count = 0; count < 5_001; count++) void emit()
    const delayed = emit()
    await clock.advance('3s')
    await expect(delayed).resolves.toMatchObject({ sinks: { sink: { kind: 'queued' } } })
  })
})

describe('an order of lanes', () => {
  it('is rejected, because an emitter keeps none', () => {
    const policy = { order: 'lane' } as object
    expect(() => world({ sink: recordingSink() }, { policy })).toThrow(
      /policy\.order: expected no order/,
    )
  })
})

describe('ready', () => {
  it('rejects when the store cannot be used', async () => {
    const store = recordingDeadLetters()
    store.stats = () => Promise.reject(new Error('no permission'))
    await expect(world({ sink: recordingSink() }, { store }).emitter.ready()).rejects.toThrow(
      'no permission',
    )
    await expect(world({ sink: recordingSink() }).emitter.ready()).resolves.toBeUndefined()
  })
})
