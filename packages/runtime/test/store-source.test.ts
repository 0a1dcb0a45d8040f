import { FakeClock, recordingDeadLetters, recordingSink } from '@redrive/testing'
import { describe, expect, it } from 'vitest'
import { createEmitter, storeSource } from '../src/index.ts'
import { event, failingSink, settled, world } from './emit.ts'

const REFUSED = Object.assign(new Error('unknown customer'), { status: 422 })

/** An emitter whose sink rejects everything permanently, and its store as a source. */
function stage() {
  const clock = new FakeClock()
  const store = recordingDeadLetters()
  const { sink, fail, recover } = failingSink({ batch: 1 })
  fail(REFUSED)
  const { emitter } = world({ partner: sink }, { store, clock, policy: { retryBudget: 'off' } })
  const source = storeSource({ store, name: 'partners', clock })
  const drained = async () => {
    const batch = await source.drain({ limit: 10 })
    return { batch, ids: batch.deadLetters.map(({ delivery }) => delivery.id) }
  }
  return { clock, store, sink, fail, recover, emitter, source, drained }
}

describe('a store as a source', () => {
  it('returns the dead letters of sinks with their failures', async () => {
    const { emitter, source } = stage()
    const given = { ...event(), id: 'a', key: 'k', lane: 'l', headers: { tenant: 't' } }
    await emitter.emit(given)
    const { deadLetters } = await source.drain({ limit: 10 })
    expect(deadLetters).toMatchObject([
      {
        delivery: {
          id: 'a/partner',
          key: 'k',
          lane: 'l',
          type: 'order.paid',
          headers: { tenant: 't' },
          cycle: { number: 1, history: [{ class: 'integration', message: 'unknown customer' }] },
        },
        origin: 'partners',
        handler: 'partner',
        class: 'integration',
        reason: 'terminal',
        identity: 'stable',
      },
    ])
  })

  it('has a failure in the history of an event that was never sent', async () => {
    const { source, drained } = stage()
    const { emitter, store } = world(
      { sink: recordingSink({ onSend: () => new Promise(() => undefined) }) },
      { queue: { maxEvents: 1, onFull: 'store' } },
    )
    await Promise.race([emitter.emit(event()), settled()])
    await emitter.emit(event())
    const full = storeSource({ store, name: 'full', leaveTransientFor: '0s' })
    const [one] = (await full.drain({ limit: 1 })).deadLetters
    expect(one?.delivery.cycle.history).toMatchObject([{ code: 'QUEUE_FULL', counted: false }])
    expect((await drained()).ids).toEqual([])
    await source.close()
  })

  it('holds an open batch: neither an emitter nor another source gets its dead letters', async () => {
    const { emitter, store, drained, recover, sink } = stage()
    await emitter.emit({ ...event(), id: 'a' })
    const { batch } = await drained()
    recover()
    expect(await emitter.replay('a/partner')).toBe(false)
    expect((await drained()).ids).toEqual([])
    await batch.abandon()
    expect((await store.stats()).count).toBe(1)
    const again = await drained()
    expect(again.ids).toEqual(['a/partner'])
    await again.batch.release()
    expect((await store.stats()).count).toBe(0)
    // A second end has no effect.
    await again.batch.abandon()
    expect(await emitter.replay('a/partner')).toBe(false)
    expect(sink.events).toEqual([])
  })

  it('and an emitter that replays at the same time never have the same event', async () => {
    const { emitter, source, sink, recover } = stage()
    for (let count = 0; count < 50; count++) await emitter.emit({ ...event(), id: `e${count}` })
    recover()
    const replaying = emitter.replayBatch({ limit: 50, concurrency: 5 })
    const ids: string[] = []
    for (;;) {
      const batch = await source.drain({ limit: 7 })
      ids.push(...batch.deadLetters.map(({ delivery }) => delivery.id))
      await batch.release()
      if (batch.deadLetters.length === 0) break
    }
    await replaying
    const sent = sink.events.map(({ id }) => `${id}/partner`)
    expect([...ids, ...sent].toSorted()).toEqual(
      Array.from({ length: 50 }, (_, count) => `e${count}/partner`).toSorted(),
    )
  })

  it('leaves transient failures to the automatic replay for a day', async () => {
    const { emitter, clock, fail, drained } = stage()
    fail()
    const emitted = emitter.emit({ ...event(), id: 'a' })
    await clock.advance('10s')
    await emitted
    expect((await drained()).ids).toEqual([])
    await clock.advance('1d')
    expect((await drained()).ids).toEqual(['a/partner'])
  })

  it('returns a replayed event to the store, and an emitter with automatic replay sends it once', async () => {
    const { emitter, clock, source, store, drained, sink, recover } = stage()
    await emitter.emit({ ...event(), id: 'a', key: 'k' })
    const { batch } = await drained()
    const [deadLetter] = batch.deadLetters
    if (deadLetter === undefined) throw new Error('nothing was drained')
    await source.publish({ deadLetter, replayId: 'r1' })
    await batch.release()
    expect(await store.get('a/partner')).toMatchObject({
      reason: 'replay_requested',
      replayId: 'r1',
      failure: { class: 'transient' },
      cycle: { number: 2, attempts: 0 },
    })
    // The control plane does not read what it has just returned, also when it takes all transient failures.
    const eager = storeSource({ store, name: 'partners', clock, leaveTransientFor: '0s' })
    expect((await eager.drain({ limit: 10 })).deadLetters).toEqual([])
    recover()
    const replaying = createEmitter({
      sinks: { partner: sink },
      store,
      queue: { maxEvents: 10, onFull: 'store' },
      autoReplay: { schedule: '* * * * * *' },
      clock,
    })
    await clock.advance('3s')
    expect(sink.events.map(({ id, key }) => [id, key])).toEqual([['a', 'k']])
    expect((await store.stats()).count).toBe(0)
    await replaying.close()
  })

  it('gets a replayed event again when it fails, with its replay id and in the next cycle', async () => {
    const { emitter, source, drained } = stage()
    await emitter.emit({ ...event(), id: 'a' })
    const first = await drained()
    const [deadLetter] = first.batch.deadLetters
    if (deadLetter === undefined) throw new Error('nothing was drained')
    await first.batch.release()
    await source.publish({ deadLetter, replayId: 'r1' })
    expect(await emitter.replayBatch({ limit: 1 })).toEqual({ replayed: 0, failed: 1 })
    const { batch } = await drained()
    expect(batch.deadLetters).toMatchObject([
      { reason: 'terminal', delivery: { id: 'a/partner', replayId: 'r1', cycle: { number: 2 } } },
    ])
  })

  it('puts dead letters back unchanged', async () => {
    const { emitter, source, store, drained } = stage()
    await emitter.emit({ ...event(), id: 'a' })
    const before = await store.get('a/partner')
    const { batch } = await drained()
    await batch.release()
    await source.putBack?.(batch.deadLetters)
    const after = await store.get('a/partner')
    const { event: sent, reason, savedAt, cycle } = before ?? {}
    expect(after).toMatchObject({ event: sent, reason, savedAt, cycle, sink: 'partner' })
  })

  it('does not take an event that an emitter has stored and is going to send', async () => {
    const { emitter, store, clock } = world(
      { sink: recordingSink({ onSend: () => new Promise(() => undefined) }) },
      { durability: 'before_send' },
    )
    const source = storeSource({ store, name: 's', leaveTransientFor: '0s', clock })
    await emitter.emit(event())
    expect((await source.drain({ limit: 1 })).deadLetters).toEqual([])
  })
})
