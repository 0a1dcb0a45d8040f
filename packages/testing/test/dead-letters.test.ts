import { type FailureClass, FIRST_CYCLE } from '@redrive/core'
import { aFailure } from '@redrive/dev-support'
import type { StoredDeadLetter, StoreFilter } from '@redrive/runtime'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { exerciseStore, noDeadLetters, recordingDeadLetters } from '../src/index.ts'

interface Changes extends Partial<Omit<StoredDeadLetter, 'event' | 'failure'>> {
  readonly type?: string
  readonly class?: FailureClass
}

function deadLetter(id: string, changes: Changes = {}): StoredDeadLetter {
  const { type = 'audit', class: failureClass = 'transient', ...others } = changes
  return {
    id,
    sink: 'loki',
    event: {
      id: `event ${id}`,
      key: id,
      type,
      lane: undefined,
      at: 0,
      bytes: new Uint8Array([1]),
      contentType: 'application/json',
      headers: {},
    },
    reason: 'attempts_exhausted',
    failure: aFailure({ class: failureClass }),
    cycle: FIRST_CYCLE,
    job: undefined,
    savedAt: 0,
    ...others,
  }
}

const sent = () => Promise.resolve()

const ALONE = 'memory belongs to one process'
const GONE = 'memory is lost with its process'

const memoryPlace = (capacity = Number.POSITIVE_INFINITY) => ({
  store: () => recordingDeadLetters({ capacity }),
  close: () => Promise.resolve(),
})

exerciseStore({
  runner: { describe, it },
  name: 'recordingDeadLetters',
  open: () => memoryPlace(),
  bounded: () => memoryPlace(7),
  skip: [
    { scenario: 'two processes that replay concurrently send once', reason: ALONE },
    { scenario: 'two processes see the changes of the other', reason: ALONE },
    { scenario: 'a hundred concurrent saves by two processes are all kept', reason: ALONE },
    { scenario: 'every acknowledged dead letter exists after close', reason: GONE },
    { scenario: 'every acknowledged dead letter exists after a crash', reason: GONE },
    { scenario: 'a crash while saving loses no acknowledged dead letter', reason: GONE },
    {
      scenario: 'after a crash while sending, another process can send the dead letter',
      reason: GONE,
    },
  ],
})

describe('recordingDeadLetters', () => {
  it('records what was saved, until it is cleared', async () => {
    const store = recordingDeadLetters()
    expect([store.count, store.last]).toEqual([0, undefined])
    await store.save(deadLetter('a'))
    await store.save(deadLetter('b'))
    await store.delete('b')
    expect(store.events.map(({ id }) => id)).toEqual(['a', 'b'])
    expect([store.count, store.last?.id]).toEqual([2, 'b'])
    store.clear()
    expect([store.count, store.last, await store.get('a')]).toEqual([0, undefined, undefined])
  })

  it('rejects more than its capacity, and saves again when it has room', async () => {
    const store = recordingDeadLetters({ capacity: 1 })
    await store.save(deadLetter('a'))
    await expect(store.save(deadLetter('b'))).rejects.toMatchObject({ code: 'DLQ_FULL' })
    expect(store.count).toBe(1)
    await store.save(deadLetter('a', { job: 'again' }))
    expect((await store.get('a'))?.job).toBe('again')
    await store.delete('a')
    await store.save(deadLetter('b'))
    expect((await store.stats()).count).toBe(1)
  })

  it('pages through everything once, whatever is deleted and saved in between', async () => {
    const savedAts = fc.uniqueArray(fc.tuple(fc.nat(3), fc.nat(1_000)), {
      maxLength: 20,
      selector: ([savedAt, name]) => `${name}-${savedAt}`,
    })
    await fc.assert(
      fc.asyncProperty(savedAts, fc.integer({ min: 1, max: 5 }), async (places, most) => {
        const store = recordingDeadLetters()
        for (const [savedAt, name] of places) {
          await store.save(deadLetter(`${name}-${savedAt}`, { savedAt }))
        }
        const seen: string[] = []
        let after: string | undefined
        do {
          const page = await store.list({
            limit: most,
            ...(after === undefined ? {} : { cursor: after }),
          })
          expect(page.deadLetters.length).toBeLessThanOrEqual(most)
          seen.push(...page.deadLetters.map(({ id }) => id))
          after = page.nextCursor
          const last = page.deadLetters.at(-1)
          if (last !== undefined) await store.delete(last.id)
        } while (after !== undefined)
        const all = places.map(([savedAt, name]) => `${name}-${savedAt}`)
        expect(new Set(seen)).toEqual(new Set(all))
        expect(seen.length).toBe(all.length)
      }),
    )
  })

  it('lists oldest first, filtered', async () => {
    const store = recordingDeadLetters()
    await store.save(deadLetter('new', { savedAt: 30 }))
    await store.save(deadLetter('old', { savedAt: 10, sink: 'sentry' }))
    await store.save(deadLetter('mid', { savedAt: 20, type: 'log', class: 'schema' }))
    const ids = async (filter: StoreFilter) =>
      (await store.list({ filter, limit: 10 })).deadLetters.map(({ id }) => id)
    expect(await ids({})).toEqual(['old', 'mid', 'new'])
    expect(await ids({ sink: 'sentry' })).toEqual(['old'])
    expect(await ids({ type: 'log' })).toEqual(['mid'])
    expect(await ids({ class: 'schema' })).toEqual(['mid'])
    expect(await ids({ savedAfter: 10, savedBefore: 30 })).toEqual(['mid'])
    expect(await store.stats()).toEqual({
      count: 3,
      bytes: 3,
      oldestSavedAt: 10,
      byClass: { transient: 2, schema: 1 },
      bySink: { loki: 2, sentry: 1 },
    })
  })

  it('rejects a foreign cursor', async () => {
    await expect(recordingDeadLetters().list({ limit: 1, cursor: 'x' })).rejects.toThrow(/cursor/)
  })

  it('deletes a dead letter only after it was sent', async () => {
    const store = recordingDeadLetters()
    await store.save(deadLetter('a'))
    await expect(store.replay('a', () => Promise.reject(new Error('still down')))).rejects.toThrow(
      'still down',
    )
    expect(await store.get('a')).toBeDefined()
    expect(await store.replay('a', sent)).toBe(true)
    expect(await store.get('a')).toBeUndefined()
    expect(await store.replay('a', sent)).toBe(false)
  })

  it('does not send a dead letter twice for two concurrent replays', async () => {
    const store = recordingDeadLetters()
    await store.save(deadLetter('a'))
    const results = await Promise.all([store.replay('a', sent), store.replay('a', sent)])
    expect(results).toEqual([true, false])
  })

  it('replays a batch and counts the failures', async () => {
    const store = recordingDeadLetters()
    for (const id of ['a', 'b', 'c', 'd']) await store.save(deadLetter(id))
    const answer = await store.replayBatch({ limit: 3 }, ({ id }) =>
      id === 'b' ? Promise.reject(new Error('no')) : Promise.resolve(),
    )
    expect(answer).toEqual({ replayed: 2, failed: 1 })
    expect((await store.list({ limit: 9 })).deadLetters.map(({ id }) => id)).toEqual(['b', 'd'])
  })

  it('removes dead letters saved before the given time', async () => {
    const store = recordingDeadLetters()
    await store.save(deadLetter('a', { savedAt: 1 }))
    await store.save(deadLetter('b', { savedAt: 2 }))
    expect(await store.cleanup({ savedBefore: 2 })).toBe(1)
    expect(await store.get('b')).toBeDefined()
  })
})

describe.each([
  ['recordingDeadLetters', recordingDeadLetters],
  ['noDeadLetters', noDeadLetters],
])('%s after close', (_, make) => {
  it('rejects every call with DLQ_CLOSED', async () => {
    const store = make()
    await store.close()
    await store.close()
    const calls = [
      store.save(deadLetter('a')),
      store.get('a'),
      store.list({ limit: 1 }),
      store.replay('a', sent),
      store.replayBatch({ limit: 1 }, sent),
      store.delete('a'),
      store.stats(),
      store.cleanup({ savedBefore: 0 }),
    ]
    for (const call of calls) await expect(call).rejects.toMatchObject({ code: 'DLQ_CLOSED' })
  })
})

describe('noDeadLetters', () => {
  it('accepts everything and keeps nothing', async () => {
    const store = noDeadLetters()
    await store.save(deadLetter('a'))
    expect(await store.get('a')).toBeUndefined()
    expect((await store.list({ limit: 1 })).deadLetters).toEqual([])
    expect(await store.replay('a', sent)).toBe(false)
    expect(await store.replayBatch({ limit: 1 }, sent)).toEqual({ replayed: 0, failed: 0 })
    expect(await store.delete('a')).toBe(false)
    expect((await store.stats()).count).toBe(0)
    expect(await store.cleanup({ savedBefore: 1 })).toBe(0)
  })
})
