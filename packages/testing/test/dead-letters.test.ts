import { type Failure, type FailureClass, FIRST_CYCLE } from '@redrive/core'
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
    failure: failure(failureClass),
    cycle: FIRST_CYCLE,
    job: undefined,
    savedAt: 0,
    ...others,
  }
}

const failure = (failureClass: FailureClass): Failure => ({
  class: failureClass,
  signature: 's',
  type: 'Error',
  code: undefined,
  message: 'm',
  retryAfterMs: undefined,
  timedOut: false,
  stack: undefined,
})

const sent = () => Promise.resolve()

const ALONE = 'what is in memory belongs to one process'
const GONE = 'what is in memory is gone with its process'

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
    { scenario: 'two processes that replay at once send once', reason: ALONE },
    { scenario: 'two processes see what the other does', reason: ALONE },
    { scenario: 'a hundred saves at once by two processes are all kept', reason: ALONE },
    { scenario: 'everything acknowledged is there after close', reason: GONE },
    { scenario: 'everything acknowledged is there after a crash', reason: GONE },
    { scenario: 'a crash while saving loses nothing acknowledged', reason: GONE },
    { scenario: 'a crash while sending leaves the dead letter to others', reason: GONE },
  ],
})

describe('recordingDeadLetters', () => {
  it('tells what it was given, until it is cleared', async () => {
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

  it('refuses to hold more than its capacity, and takes more once there is room', async () => {
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

  it('pages through everything once, whatever is deleted and saved meanwhile', async () => {
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
          const page = await store.list({ most, ...(after === undefined ? {} : { after }) })
          expect(page.deadLetters.length).toBeLessThanOrEqual(most)
          seen.push(...page.deadLetters.map(({ id }) => id))
          after = page.next
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
      (await store.list({ filter, most: 10 })).deadLetters.map(({ id }) => id)
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

  it('refuses a cursor that is not its own', async () => {
    await expect(recordingDeadLetters().list({ most: 1, after: 'x' })).rejects.toThrow(/cursor/)
  })

  it('forgets a dead letter only after it was sent', async () => {
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

  it('does not send one twice when two replay it at once', async () => {
    const store = recordingDeadLetters()
    await store.save(deadLetter('a'))
    const answers = await Promise.all([store.replay('a', sent), store.replay('a', sent)])
    expect(answers).toEqual([true, false])
  })

  it('replays a batch and counts what failed', async () => {
    const store = recordingDeadLetters()
    for (const id of ['a', 'b', 'c', 'd']) await store.save(deadLetter(id))
    const answer = await store.replayBatch({ most: 3 }, ({ id }) =>
      id === 'b' ? Promise.reject(new Error('no')) : Promise.resolve(),
    )
    expect(answer).toEqual({ replayed: 2, failed: 1 })
    expect((await store.list({ most: 9 })).deadLetters.map(({ id }) => id)).toEqual(['b', 'd'])
  })

  it('cleans up what is older than the moment', async () => {
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
      store.list({ most: 1 }),
      store.replay('a', sent),
      store.replayBatch({ most: 1 }, sent),
      store.delete('a'),
      store.stats(),
      store.cleanup({ savedBefore: 0 }),
    ]
    for (const call of calls) await expect(call).rejects.toMatchObject({ code: 'DLQ_CLOSED' })
  })
})

describe('noDeadLetters', () => {
  it('takes everything and keeps nothing', async () => {
    const store = noDeadLetters()
    await store.save(deadLetter('a'))
    expect(await store.get('a')).toBeUndefined()
    expect((await store.list({ most: 1 })).deadLetters).toEqual([])
    expect(await store.replay('a', sent)).toBe(false)
    expect(await store.replayBatch({ most: 1 }, sent)).toEqual({ replayed: 0, failed: 0 })
    expect(await store.delete('a')).toBe(false)
    expect((await store.stats()).count).toBe(0)
    expect(await store.cleanup({ savedBefore: 1 })).toBe(0)
  })
})
