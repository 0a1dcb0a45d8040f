import { describe, expect, it } from 'vitest'
import { noDeadLetters, recordingDeadLetters, recordingSink } from '@redrive/testing'
import {
  createEmitter,
  nonFailing,
  onEvent,
  type OutboundEvent,
  type RedriveEvent,
} from '../src/index.ts'
import { amounts, event, failingSink, settled, world } from './emit.ts'

const REFUSED = Object.assign(new Error('no'), { status: 400 })

describe('emit', () => {
  it('sends an event to every sink, and returns a result for each', async () => {
    const [a, b] = [recordingSink(), recordingSink()]
    const { emitter, clock } = world({ a, b })
    const result = await emitter.emit({
      type: 'order.paid',
      data: { amount: 5 },
      lane: 'order-1',
      severity: 'error',
      headers: { tenant: 't' },
    })
    expect(result.sinks).toEqual({ a: { kind: 'delivered' }, b: { kind: 'delivered' } })
    expect(a.events).toEqual(b.events)
    expect(a.events).toEqual([
      {
        id: result.id,
        key: result.id,
        type: 'order.paid',
        lane: 'order-1',
        at: clock.now(),
        bytes: Buffer.from('{"amount":5}'),
        contentType: 'application/json',
        headers: { tenant: 't', severity: 'error' },
      },
    ])
  })

  it('sends bytes unchanged', async () => {
    const sink = recordingSink()
    const bytes = new Uint8Array([0xff, 0, 0xfe])
    await world({ sink }).emitter.emit({ type: 't', data: bytes, id: 'i', key: 'k' })
    expect(sink.events[0]).toMatchObject({
      id: 'i',
      key: 'k',
      contentType: 'application/octet-stream',
    })
    expect(sink.events[0]?.bytes).toEqual(bytes)
  })

  it('retries, and delivers after a temporary failure', async () => {
    const { sink, fail, recover } = failingSink()
    const { emitter, clock, store } = world({ sink })
    fail()
    const emitted = emitter.emit(event())
    await settled()
    recover()
    await clock.advance('10s')
    expect((await emitted).sinks).toEqual({ sink: { kind: 'delivered' } })
    expect([sink.events.length, sink.sizes.length, store.count]).toEqual([1, 2, 0])
  })

  it('keeps sinks independent: one gives up with its whole history, the other delivers immediately', async () => {
    const { sink: bad, fail } = failingSink()
    const good = recordingSink()
    const { emitter, clock, store } = world({ bad, good })
    fail(new Error('odd'))
    const emitted = emitter.emit(event())
    await settled()
    expect(good.events).toHaveLength(1)
    await clock.advance('1m')
    expect((await emitted).sinks).toEqual({
      bad: { kind: 'stored', reason: 'attempts_exhausted' },
      good: { kind: 'delivered' },
    })
    const [kept] = store.events
    expect(kept).toMatchObject({ id: `${(await emitted).id}/bad`, sink: 'bad', job: undefined })
    expect(kept?.cycle.history.map(({ message }) => message)).toEqual(['odd', 'odd', 'odd'])
    expect(kept?.event).toEqual(good.events[0])
    expect(good.sizes).toEqual([1])
  })

  it('aborts a sink that does not respond, with its signal', async () => {
    const signals: AbortSignal[] = []
    const sink = recordingSink({
      onSend: (_, { signal }) => {
        signals.push(signal)
        return new Promise(() => undefined)
      },
    })
    const { emitter, clock, store } = world(
      { sink },
      { policy: { timeout: '2s', retry: { attempts: 1 }, outage: 'off' } },
    )
    const emitted = emitter.emit(event())
    await clock.advance('1999ms')
    expect([signals.length, signals[0]?.aborted]).toEqual([1, false])
    await clock.advance('2ms')
    expect(signals[0]?.aborted).toBe(true)
    expect((await emitted).sinks['sink']).toEqual({ kind: 'stored', reason: 'attempts_exhausted' })
    expect(store.last?.failure).toMatchObject({ code: 'ATTEMPT_TIMEOUT', timedOut: true })
  })

  it('sends events that are emitted together in one batch, up to the batch size of the sink', async () => {
    const sink = recordingSink({ batch: 100 })
    const { emitter } = world({ sink })
    await Promise.all(Array.from({ length: 250 }, () => emitter.emit(event())))
    expect(sink.sizes).toEqual([100, 100, 50])
  })

  it('delays an incomplete batch for the one in flight, but not for long', async () => {
    const sizes: number[] = []
    const sink = recordingSink({
      batch: 10,
      onSend: (events) => {
        sizes.push(events.length)
        return new Promise(() => undefined)
      },
    })
    const { emitter, clock } = world({ sink })
    void emitter.emit(event())
    await settled()
    void emitter.emit(event())
    await settled()
    void emitter.emit(event())
    await clock.advance('49ms')
    expect(sizes).toEqual([1])
    await clock.advance('2ms')
    expect(sizes).toEqual([1, 2])
  })

  it('finds the one event that makes a batch fail, and delivers the others once', async () => {
    const sink = recordingSink({
      batch: 50,
      onSend: (events) => {
        if (events.some(({ type }) => type === 'bad')) throw REFUSED
      },
    })
    const { emitter, store } = world({ sink })
    const types = Array.from({ length: 50 }, (_, index) => (index === 33 ? 'bad' : `t${index}`))
    const results = await Promise.all(types.map((type) => emitter.emit(event(type))))
    expect(sink.events.map(({ type }) => type).toSorted()).toEqual(
      types.filter((type) => type !== 'bad').toSorted(),
    )
    expect(results[33]?.sinks['sink']).toEqual({ kind: 'stored', reason: 'terminal' })
    expect(store.events.map(({ event: kept }) => kept.type)).toEqual(['bad'])
  })

  it('does not call a sink whose breaker is open, and stores immediately', async () => {
    const { sink, fail } = failingSink({ batch: 1 })
    const { emitter, store } = world({ sink })
    fail()
    await Promise.all(Array.from({ length: 5 }, () => emitter.emit(event())))
    const calls = sink.sizes.length
    expect(emitter.stats().sinks['sink']?.breaker).toBe('open')
    const { sinks } = await emitter.emit(event('late'))
    expect(sinks['sink']).toEqual({ kind: 'stored', reason: 'breaker_open' })
    expect(sink.sizes.length).toBe(calls)
    expect(store.last?.event.type).toBe('late')
  })

  it('keeps its events while the breaker is open, when the policy pauses', async () => {
    const { sink, fail, recover } = failingSink({ batch: 1 })
    const { emitter, store, clock } = world({ sink }, { policy: { onBreakerOpen: 'pause' } })
    fail()
    const emitted = Array.from({ length: 20 }, () => emitter.emit(event()))
    await settled()
    expect(emitter.stats().sinks['sink']).toMatchObject({ breaker: 'open', inFlight: 20 })
    recover()
    await clock.advance('2m')
    for (const { sinks } of await Promise.all(emitted)) {
      expect(sinks['sink']).toEqual({ kind: 'delivered' })
    }
    expect([store.count, sink.events.length]).toEqual([0, 20])
  })
})

describe('a full queue', () => {
  /** A sink that responds when the test triggers it. */
  function slow() {
    const pending: (() => void)[] = []
    const sink = recordingSink({
      batch: 1,
      onSend: () => new Promise<void>((resolve) => pending.push(resolve)),
    })
    return { sink, respond: () => pending.splice(0).forEach((resolve) => resolve()) }
  }

  it("waits for room with 'wait', and delivers all", async () => {
    const { sink, respond } = slow()
    const { emitter, store } = world({ sink }, { queue: { maxEvents: 2, onFull: 'wait' } })
    const emitted = Array.from({ length: 6 }, (_, index) => emitter.emit(event(`t${index}`)))
    for (let time = 0; time < 6; time++) {
      await settled()
      expect(emitter.stats().sinks['sink']?.inFlight).toBeLessThanOrEqual(2)
      respond()
    }
    await Promise.all(emitted)
    expect([sink.events.length, store.count]).toEqual([6, 0])
  })

  it("stores events that do not fit with 'store', or when it must not wait", async () => {
    for (const [onFull, emitting] of [
      ['store', (work: () => unknown) => work()],
      ['wait', nonFailing],
    ] as const) {
      const { sink } = slow()
      const { emitter, store } = world({ sink }, { queue: { maxEvents: 1, onFull: onFull } })
      emitting(() => void emitter.emit(event('first')))
      await settled()
      emitting(() => void emitter.emit(event('second')))
      await settled()
      expect(store.events.map((one) => [one.event.type, one.reason])).toEqual([
        ['second', 'queue_full'],
      ])
    }
  })

  it("drops events that do not fit with 'drop', but never events that must be kept", async () => {
    const { sink } = slow()
    const { emitter, store } = world(
      { sink },
      { queue: { maxEvents: 1, onFull: 'drop' }, filter: { keep: [/^payment\./] } },
    )
    void emitter.emit(event('first'))
    await settled()
    expect((await emitter.emit(event('junk'))).sinks['sink']).toEqual({
      kind: 'dropped',
      reason: 'queue_full',
    })
    expect((await emitter.emit(event('payment.made'))).sinks['sink']).toEqual({
      kind: 'stored',
      reason: 'queue_full',
    })
    expect(store.events.map((one) => one.event.type)).toEqual(['payment.made'])
    expect(emitter.stats().sinks['sink']).toMatchObject({ dropped: 1, stored: 1 })
  })
})

describe('the filter', () => {
  it('applies drop before keep before keepIf', async () => {
    const { sink, fail } = failingSink()
    const { emitter, store } = world(
      { sink },
      {
        filter: {
          drop: ['noise'],
          keep: ['audit'],
          keepIf: ({ delivery }) => delivery.type !== 'b',
        },
      },
    )
    fail(REFUSED)
    const outcomes = await Promise.all(
      ['noise', 'audit', 'b', 'c'].map(
        async (type) => (await emitter.emit(event(type))).sinks['sink'],
      ),
    )
    expect(outcomes.map((one) => one?.kind)).toEqual(['dropped', 'stored', 'dropped', 'stored'])
    expect(outcomes[0]).toEqual({ kind: 'dropped', reason: 'filtered' })
    expect(store.events.map((one) => one.event.type).toSorted()).toEqual(['audit', 'c'])
  })
})

describe('a rate limit', () => {
  it('loses no payment among 4,000 junk events, and drops and counts the junk', async () => {
    const sink = recordingSink()
    const { emitter, store } = world(
      { sink },
      {
        rateLimit: { perSecond: 1_000 },
        filter: { keep: [/^payment\./] },
      },
    )
    const types = Array.from({ length: 5_000 }, (_, index) =>
      index % 5 === 0 ? 'payment.made' : 'junk',
    )
    const results = await Promise.all(types.map((type) => emitter.emit(event(type))))
    const kinds = results.map(({ sinks }) => sinks['sink']?.kind)
    const count = (type: string, kind: string) =>
      types.filter((one, index) => one === type && kinds[index] === kind).length
    expect([count('payment.made', 'delivered'), count('payment.made', 'stored')]).toEqual([
      200, 800,
    ])
    expect([count('junk', 'delivered'), count('junk', 'dropped')]).toEqual([800, 3_200])
    expect(store.events.every(({ event: kept }) => kept.type === 'payment.made')).toBe(true)
    expect(store.last).toMatchObject({ reason: 'rate_limited', failure: { class: 'transient' } })
    expect(emitter.stats().limited).toBe(4_000)
  })

  it('allows more events with time', async () => {
    const { emitter, clock } = world({ sink: recordingSink() }, { rateLimit: { perSecond: 2 } })
    const kinds = async () =>
      (await Promise.all(Array.from({ length: 4 }, () => emitter.emit(event())))).map(
        ({ sinks }) => sinks['sink']?.kind,
      )
    expect(await kinds()).toEqual(['delivered', 'delivered', 'dropped', 'dropped'])
    await clock.advance('500ms')
    expect(await kinds()).toEqual(['delivered', 'dropped', 'dropped', 'dropped'])
  })

  it.each([
    ['a severity', { severity: 'error' }, { severity: 'fatal' }, { severity: 'warning' }],
    ['a type', { types: [/^audit/g] }, { type: 'audit.x' }, { type: 'x' }],
    [
      'a verified event',
      { when: ({ headers }: OutboundEvent) => headers['proof'] === 'yes' },
      { headers: { proof: 'yes' } },
      {},
    ],
  ] as const)('is bypassed by %s only when configured', async (_, bypass, passes, does_not) => {
    const { emitter } = world(
      { sink: recordingSink() },
      { rateLimit: { perSecond: 0.001, burst: 1, bypass } },
    )
    await emitter.emit(event())
    for (let time = 0; time < 3; time++) {
      const { sinks } = await emitter.emit({ ...event(), ...passes })
      expect(sinks['sink']?.kind).toBe('delivered')
    }
    const { sinks } = await emitter.emit({ ...event(), ...does_not })
    expect(sinks['sink']?.kind).toBe('dropped')
  })
})

it('ignores a bypass that throws', async () => {
  const when = () => {
    throw new Error('no header')
  }
  const rateLimit = { perSecond: 0.001, burst: 1, bypass: { when } }
  const { emitter } = world({ sink: recordingSink() }, { rateLimit })
  const published: RedriveEvent[] = []
  const end = onEvent((one) => published.push(one))
  const kinds = [await emitter.emit(event()), await emitter.emit(event())].map(
    ({ sinks }) => sinks['sink']?.kind,
  )
  end()
  expect(kinds).toEqual(['delivered', 'dropped'])
  expect(published.find(({ type }) => type === 'user_code_failed')).toMatchObject({
    where: 'rateLimit.bypass',
  })
})

describe('a schema', () => {
  const schemas = { 'order.paid': amounts }

  it('validates the data, and its output is sent', async () => {
    const sink = recordingSink()
    const { store, clock } = world({ sink })
    const emitter = createEmitter({
      sinks: { sink },
      store,
      clock,
      schemas,
      queue: { maxEvents: 10, onFull: 'store' },
    })
    await emitter.emit({ type: 'order.paid', data: { amount: '7' } })
    expect(Buffer.from(sink.events[0]?.bytes ?? []).toString()).toBe('{"amount":7}')
    const wrong = emitter.emit({ type: 'order.paid', data: { amount: 'x' } })
    await expect(wrong).rejects.toMatchObject({ code: 'PAYLOAD_INVALID' })
    expect([sink.events.length, store.count]).toEqual([1, 0])
  })

  it('may be asynchronous, and may reject', async () => {
    const sink = recordingSink()
    const later: typeof amounts = {
      '~standard': {
        ...amounts['~standard'],
        validate: async (value) => amounts['~standard'].validate(value),
      },
    }
    const { emitter, store } = world({ sink }, { schemas: { 'order.paid': later } })
    await emitter.emit(event('order.paid', { amount: '7' }))
    expect(sink.events).toHaveLength(1)
    const wrong = event('order.paid', { amount: 'x' })
    await expect(emitter.emit(wrong)).rejects.toMatchObject({ code: 'PAYLOAD_INVALID' })
    await nonFailing(() => emitter.emit(wrong))
    await settled()
    expect(store.last?.reason).toBe('invalid')
    const unhandled: unknown[] = []
    const listen = (error: unknown) => void unhandled.push(error)
    process.on('unhandledRejection', listen)
    void emitter.emit(wrong)
    await settled()
    process.off('unhandledRejection', listen)
    expect(unhandled).toEqual([])
  })

  it('does not fail in a non-failing scope: a rejected event is stored unchanged', async () => {
    const sink = recordingSink()
    const { emitter, store } = world({ sink }, { schemas })
    const cyclic: { self?: unknown } = {}
    cyclic.self = cyclic
    await nonFailing(async () => {
      await emitter.emit(event('order.paid', { amount: 'x' }))
      await emitter.emit(event('other', cyclic))
    })
    await settled()
    expect(store.events.map((one) => [one.reason, one.failure.class])).toEqual([
      ['invalid', 'schema'],
      ['invalid', 'schema'],
    ])
    expect(Buffer.from(store.events[0]?.event.bytes ?? []).toString()).toBe('{"amount":"x"}')
    expect(sink.events).toEqual([])
  })
})

describe('a failing store', () => {
  it('is called three times; then the event is lost, and the caller gets an error', async () => {
    const { sink, fail } = failingSink()
    let saves = 0
    const store = {
      ...noDeadLetters(),
      save: () => {
        saves += 1
        return Promise.reject(new Error('disk full'))
      },
    }
    const { emitter, clock } = world({ sink, good: recordingSink() }, { store })
    fail(REFUSED)
    const emitted = emitter.emit(event())
    await clock.advance('1s')
    await expect(emitted).rejects.toMatchObject({
      code: 'EVENT_LOST',
      problems: ['sink: disk full'],
    })
    expect(saves).toBe(3)
    expect(emitter.stats().sinks['sink']?.lost).toBe(1)
  })

  it('is called once when it is full, and a non-failing job continues', async () => {
    const { sink, fail } = failingSink()
    const store = recordingDeadLetters({ capacity: 0 })
    const { emitter } = world({ sink }, { store })
    fail(REFUSED)
    const published: RedriveEvent[] = []
    const end = onEvent((one) => published.push(one))
    const result = await nonFailing(() => emitter.emit(event()), { job: 'nightly' })
    expect(result.sinks).toEqual({ sink: { kind: 'queued' } })
    await settled()
    end()
    expect(emitter.stats().jobs).toEqual({ nightly: { stored: 0, dropped: 0, lost: 1 } })
    expect(published.find(({ type }) => type === 'emission_failed')).toMatchObject({
      source: 'sink',
      job: 'nightly',
      result: { kind: 'lost' },
      event: { type: 'order.paid' },
    })
  })

  it('keeps a burst that is larger than it accepts concurrently', async () => {
    const store = recordingDeadLetters()
    const save = store.save.bind(store)
    let [saving, most] = [0, 0]
    store.save = async (deadLetter) => {
      saving += 1
      most = Math.max(most, saving)
      await settled()
      saving -= 1
      return save(deadLetter)
    }
    const queue = { maxEvents: 1_000, onFull: 'store' } as const
    const { emitter } = world({ sink: recordingSink() }, { store, queue })
    const emitted = nonFailing(() => Array.from({ length: 30_000 }, () => emitter.emit(event())))
    await Promise.all(emitted)
    await emitter.close()
    expect(emitter.stats().sinks['sink']).toMatchObject({
      delivered: 1_000,
      stored: 29_000,
      lost: 0,
    })
    expect(store.count).toBe(29_000)
    expect(most).toBe(5_000)
  })

  it('delays a non-failing job only while events wait for it', async () => {
    let release = () => {}
    const open = new Promise<void>((resolve) => (release = resolve))
    const store = { ...noDeadLetters(), save: () => open }
    const queue = { maxEvents: 1, onFull: 'store' } as const
    const sink = recordingSink({ onSend: () => open })
    const { emitter } = world({ sink }, { store, queue })
    const emit = () => nonFailing(() => emitter.emit(event()))
    for (let count = 0; count <= 5_000; count++) await emit()
    let isDone = false
    const delayed = emit().then(() => (isDone = true))
    await settled()
    expect(isDone).toBe(false)
    release()
    await delayed
    await emit()
  })

  it('does not fill the memory when it hangs', async () => {
    const store = { ...noDeadLetters(), save: () => new Promise<void>(() => undefined) }
    const sink = recordingSink({ onSend: () => new Promise(() => undefined) })
    const { emitter } = world({ sink }, { store, queue: { maxEvents: 1, onFull: 'store' } })
    // One array for all, because 8 + 256 MiB of bodies may wait.
    const data = new Uint8Array(2 ** 20 - 1_024)
    for (let count = 0; count < 1 + 8 + 256 + 50; count++) void emitter.emit({ type: 't', data })
    await settled()
    expect(emitter.stats().sinks['sink']?.lost).toBe(50)
  })
})

describe('closing', () => {
  it('waits for events in flight, then closes sinks and store, and accepts no more', async () => {
    const pending: (() => void)[] = []
    const sink = recordingSink({ onSend: () => new Promise<void>((go) => pending.push(go)) })
    const { emitter, store, clock } = world({ sink })
    const emitted = emitter.emit(event())
    await settled()
    const closing = emitter.close()
    await expect(emitter.emit(event())).rejects.toMatchObject({ code: 'CLOSED' })
    await clock.advance('9s')
    expect(sink.isClosed).toBe(false)
    pending[0]?.()
    await closing
    expect((await emitted).sinks['sink']).toEqual({ kind: 'delivered' })
    expect([sink.isClosed, clock.pending]).toEqual([true, 0])
    await expect(store.stats()).rejects.toMatchObject({ code: 'DLQ_CLOSED' })
    await emitter.close()
  })

  it('stores events that could not be delivered in time: being sent, waiting for a retry and queued', async () => {
    const kept = recordingDeadLetters()
    const hanging = recordingSink({ batch: 1, onSend: () => new Promise(() => undefined) })
    const { sink: failing, fail } = failingSink({ batch: 1 })
    fail(new Error('odd'))
    const policy = { concurrency: 1, adaptiveConcurrency: 'off', breaker: 'off' } as const
    const { emitter, clock } = world({ hanging, failing }, { store: kept, policy })
    const emitted = [emitter.emit(event('a')), emitter.emit(event('b'))]
    await settled()
    const closing = emitter.close({ drain: '20ms' })
    await clock.advance('30ms')
    await closing
    expect(
      kept.events.map((one) => `${one.sink} ${one.event.type} ${one.reason}`).toSorted(),
    ).toEqual(['failing a closed', 'failing b closed', 'hanging a closed', 'hanging b closed'])
    for (const { sinks } of await Promise.all(emitted)) {
      expect(sinks).toEqual({
        hanging: { kind: 'stored', reason: 'closed' },
        failing: { kind: 'stored', reason: 'closed' },
      })
    }
    expect(clock.pending).toBe(0)
  })

  it('stores the events of a non-failing job during the close, to be replayed like those in flight', async () => {
    const kept = recordingDeadLetters()
    const sink = recordingSink({ onSend: () => new Promise(() => undefined) })
    const { emitter, clock } = world({ sink }, { store: kept })
    void emitter.emit(event('first'))
    await settled()
    const closing = emitter.close({ drain: '20ms' })
    await nonFailing(() => emitter.emit(event('second')))
    await settled()
    expect(kept.last).toMatchObject({
      event: { type: 'second' },
      reason: 'closed',
      failure: { class: 'transient', code: 'CLOSED' },
    })
    await clock.advance('30ms')
    await closing
  })

  it('rejects an event whose schema took longer than that', async () => {
    const { promise: schemaCalled, resolve: respond } = Promise.withResolvers<void>()
    const slow: typeof amounts = {
      '~standard': {
        ...amounts['~standard'],
        validate: async (value) => {
          await schemaCalled
          return amounts['~standard'].validate(value)
        },
      },
    }
    const { emitter } = world({ sink: recordingSink() }, { schemas: { 'order.paid': slow } })
    const emitted = emitter.emit(event())
    await emitter.close()
    respond()
    await expect(emitted).rejects.toMatchObject({ code: 'CLOSED' })
  })

  it('also stores events that wait for room', async () => {
    const kept = recordingDeadLetters()
    const sink = recordingSink({ batch: 1, onSend: () => new Promise(() => undefined) })
    const queue = { maxEvents: 1, onFull: 'wait' } as const
    const { emitter, clock } = world({ sink }, { store: kept, queue })
    const emitted = Array.from({ length: 5 }, () => emitter.emit(event()))
    await settled()
    const closing = emitter.close({ drain: '20ms' })
    await clock.advance('30ms')
    await closing
    expect((await Promise.all(emitted)).map(({ sinks }) => sinks['sink'])).toEqual(
      Array<unknown>(5).fill({ kind: 'stored', reason: 'closed' }),
    )
    expect(kept.count).toBe(5)
  })

  it('waits for running saves before it closes the store', async () => {
    const { sink, fail } = failingSink()
    const store = recordingDeadLetters()
    const { promise: opened, resolve: open } = Promise.withResolvers<void>()
    const slow = {
      ...store,
      save: (...args: Parameters<typeof store.save>) => opened.then(() => store.save(...args)),
      close: () => store.close(),
    }
    const { emitter } = world({ sink }, { store: slow })
    fail(REFUSED)
    const emitted = emitter.emit(event())
    await settled()
    const closing = emitter.close()
    await settled()
    open()
    await closing
    expect((await emitted).sinks['sink']).toEqual({ kind: 'stored', reason: 'terminal' })
  })

  it('does not end the process when the caller does not await an event that cannot be emitted', async () => {
    const { emitter } = world({ sink: recordingSink() })
    await emitter.close()
    const unhandled: unknown[] = []
    const listen = (error: unknown) => void unhandled.push(error)
    process.on('unhandledRejection', listen)
    void emitter.emit(event())
    await settled()
    process.off('unhandledRejection', listen)
    expect(unhandled).toEqual([])
  })
})

describe('options', () => {
  it('are rejected with a list of all problems', () => {
    const make = () =>
      createEmitter({
        sinks: {
          a: { sink: recordingSink(), policy: { timeout: 'soon' as '1s' } },
          b: { sink: {}, queu: {} } as never,
          c: undefined as never,
          '': recordingSink(),
        },
        store: undefined as never,
        queue: { maxEvents: 0, onFull: 'explode' as 'drop' },
        policy: { retry: { attempts: 0 } },
        schemas: { 'order.paid': { type: 'object' } as never },
        rateLimit: { perSecond: 0, burst: 0, bypass: { severity: 'bad' as never } },
        autoReplay: { schedule: 'now and then' },
        cleanup: { retention: 'x' as '1d' },
        filter: { drop: 'x' as never },
        clock: {} as never,
        rateLimits: {},
      } as never)
    const duration = (from: string, to: string) =>
      `expected a duration from ${from} to ${to} such as '250ms', '5s' or '2m'`
    const sink = "expected a sink such as loki({ url: 'http://loki:3100' })"
    expect(make).toThrow(
      expect.objectContaining({
        code: 'POLICY_INVALID',
        problems: [
          'policy.retry.attempts: expected a whole number from 1 to 1000, got 0',
          'queue.maxEvents: expected a whole number from 1 to 1000000, got 0',
          "queue.onFull: expected 'wait', 'store' or 'drop', got 'explode'",
          `sinks.a.policy.timeout: ${duration('1ms', '12h')}, got 'soon'`,
          'sinks.a.policy.retry.attempts: expected a whole number from 1 to 1000, got 0',
          `sinks.b.sink: ${sink}, got an object`,
          'sinks.b.queu: unknown option; known options: policy, queue, sink',
          `sinks.c: ${sink}, got undefined`,
          'sinks: expected a name for each sink, got an empty name',
          "store: expected a dead-letter store such as fileStore({ directory: 'dead-letters' }), got undefined",
          'schemas.order.paid: expected a Standard Schema, such as one of zod, valibot or arktype, got an object',
          "filter.drop: expected a list of texts, patterns or functions, got 'x'",
          'rateLimit.perSecond: expected a number from 0.001 to 10000000, got 0',
          'rateLimit.burst: expected a number from 1 to 10000000, got 0',
          "rateLimit.bypass.severity: expected 'debug' or 'info' or 'warning' or 'error' or 'fatal', got 'bad'",
          expect.stringMatching(/^autoReplay.schedule: expected a cron expression such as/),
          `cleanup.retention: ${duration('1ms', '3650d')}, got 'x'`,
          'clock: expected a clock with now() and after(), got an object',
          'rateLimits: unknown option; known options: autoReplay, cleanup, clock, durability, filter, maxWait, policy, queue, random, rateLimit, schemas, sinks, store',
        ],
      }),
    )
  })

  it('must contain at least one sink', () => {
    for (const sinks of [undefined, {}]) {
      expect(() => createEmitter({ sinks, store: noDeadLetters() } as never)).toThrow(
        '- sinks: expected at least one sink, such as { loki: loki({ url }) }',
      )
    }
  })

  it('of close are checked: it rejects, and the emitter continues', async () => {
    const { emitter } = world({ sink: recordingSink() })
    await expect(emitter.close({ drain: 'soon' as '1s' })).rejects.toThrow(
      "The options of close() are invalid:\n- drain: expected a duration from 0ms to 366d such as '250ms', '5s' or '2m', got 'soon'",
    )
    expect((await emitter.emit(event())).sinks).toMatchObject({ sink: { kind: 'delivered' } })
  })

  it('must contain the queue behaviour for a slow sink', () => {
    const options = { sinks: { a: recordingSink() }, store: noDeadLetters() }
    expect(() => createEmitter(options as never)).toThrow(
      "- queue: expected a limit for events that wait for a slow sink, such as { maxEvents: 10_000, onFull: 'store' }, got nothing",
    )
  })
})
