import { recordingDeadLetters, recordingSink } from '@redrive/testing'
import { describe, expect, it } from 'vitest'
import { nonFailing } from '../src/index.ts'
import { event, failingSink, settled, world } from './emit.ts'

const BEFORE_SEND = { durability: 'before_send' } as const
const STORED = { kind: 'stored', reason: 'before_send' }
const REFUSED = Object.assign(new Error('no'), { status: 400 })

describe("durability 'before_send'", () => {
  it('stores an event, resolves emit, and only then sends it and deletes it', async () => {
    let accept = () => {}
    const accepted = new Promise<void>((resolve) => (accept = resolve))
    const sink = recordingSink({ onSend: () => accepted })
    const { emitter, store } = world({ sink }, BEFORE_SEND)
    const { id, sinks } = await emitter.emit(event())
    expect(sinks['sink']).toEqual(STORED)
    expect(await store.get(`${id}/sink`)).toMatchObject({ reason: 'before_send', event: { id } })
    await settled()
    expect(sink.sizes).toEqual([1])
    accept()
    await settled()
    expect(sink.events.map((one) => one.id)).toEqual([id])
    expect((await store.stats()).count).toBe(0)
    expect(emitter.stats().sinks['sink']).toMatchObject({ delivered: 1, stored: 0, inFlight: 0 })
  })

  it('replaces the entry by one with the failure when the sink does not accept the event', async () => {
    const { sink, fail } = failingSink()
    const { emitter, store } = world({ sink }, BEFORE_SEND)
    fail(REFUSED)
    const { id } = await emitter.emit(event())
    await settled()
    expect(await store.get(`${id}/sink`)).toMatchObject({
      reason: 'terminal',
      failure: { class: 'integration', code: 'HTTP 400' },
    })
    expect(emitter.stats().sinks['sink']).toMatchObject({ delivered: 0, stored: 1, inFlight: 0 })
  })

  it('deletes an event that the filter drops after its failure', async () => {
    const { sink, fail } = failingSink()
    const { emitter, store } = world({ sink }, { ...BEFORE_SEND, filter: { drop: ['debug'] } })
    fail(REFUSED)
    await emitter.emit(event('debug'))
    await settled()
    expect((await store.stats()).count).toBe(0)
    expect(emitter.stats().sinks['sink']).toMatchObject({ dropped: 1, stored: 0 })
  })

  it('sends an event that the store did not accept, and reports the result of the sink', async () => {
    const { sink, fail } = failingSink()
    const store = recordingDeadLetters({ capacity: 0 })
    const { emitter } = world({ sink }, { ...BEFORE_SEND, store })
    expect((await emitter.emit(event())).sinks['sink']).toEqual({ kind: 'delivered' })
    fail(REFUSED)
    await expect(emitter.emit(event())).rejects.toMatchObject({ code: 'EVENT_LOST' })
  })

  it('does not send an event that a replay sends at the same time', async () => {
    const sink = recordingSink()
    const policy = { retryBudget: 'off' } as const
    const { emitter, store } = world({ sink }, { ...BEFORE_SEND, policy })
    const emitted = Array.from({ length: 300 }, () => emitter.emit(event()))
    await Promise.all(emitted.slice(0, 1))
    await emitter.replayBatch({ limit: 300, concurrency: 50 })
    await Promise.all(emitted)
    await settled()
    expect(new Set(sink.events.map(({ id }) => id)).size).toBe(300)
    expect(sink.events.length).toBe(300)
    expect((await store.stats()).count).toBe(0)
    expect(emitter.stats().sinks['sink']?.inFlight).toBe(0)
  })

  it('leaves events in the store that were not sent before the emitter closed', async () => {
    const sink = recordingSink({ onSend: () => new Promise(() => undefined) })
    const { emitter, store, clock } = world({ sink }, BEFORE_SEND)
    const ended: string[] = []
    const close = store.close.bind(store)
    store.close = async () => {
      const { deadLetters } = await store.list({ limit: 1_000 })
      ended.push(...deadLetters.map(({ reason }) => reason))
      await close()
    }
    await Promise.all(Array.from({ length: 250 }, () => emitter.emit(event())))
    const closing = emitter.close({ drain: '1s' })
    await clock.advance('2s')
    await closing
    expect(ended.length).toBe(250)
    expect(new Set(ended)).toEqual(new Set(['closed', 'before_send']))
    expect(emitter.stats().sinks['sink']).toMatchObject({ stored: 250, lost: 0, inFlight: 0 })
  })

  it('keeps the rules of a full queue', async () => {
    const sink = recordingSink({ onSend: () => new Promise(() => undefined) })
    const queue = { maxEvents: 10, onFull: 'store' } as const
    const { emitter, store } = world({ sink }, { ...BEFORE_SEND, queue })
    const results = await Promise.all(Array.from({ length: 30 }, () => emitter.emit(event())))
    const reasons = Object.groupBy(results, ({ sinks }) => JSON.stringify(sinks['sink']))
    expect(Object.values(reasons).map((one) => one?.length)).toEqual([10, 20])
    expect((await store.stats()).count).toBe(30)
  })

  it('does not delay a non-failing job', async () => {
    const sink = recordingSink()
    const { emitter } = world({ sink }, BEFORE_SEND)
    const { sinks } = await nonFailing(() => emitter.emit(event()))
    expect(sinks['sink']).toEqual({ kind: 'queued' })
    await settled()
    expect(sink.events.length).toBe(1)
  })
})
