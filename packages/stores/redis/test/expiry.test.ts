import { FAILURE_CLASSES } from '@redrive/core'
import { seededRandom } from '@redrive/testing'
import { describe, expect, it, vi } from 'vitest'
import { onWorld, PATIENT, saveAll, sent } from './rig.ts'
import { deadLetter, START } from './samples.ts'
import { CLIENTS } from './world.ts'

describe.concurrent('an expired dead letter', () => {
  for (const [name, connect] of CLIENTS) {
    it(
      `disappears from lists, counts and the server at the same time, with ${name}`,
      onWorld(async (world) => {
        const brief = await world.store({ retention: '1s' })
        const store = await world.store({ retention: '1h' })
        await saveAll(brief, 250, 'brief')
        await store.save(
          deadLetter('long', { savedAt: START - 1, sink: 'sentry', class: 'schema' }),
        )
        // They are saved concurrently, so the last to expire is not known.
        const areExpired = async () => {
          const ids = Array.from({ length: 250 }, (_, index) => `brief ${index}`)
          const found = await Promise.all(ids.map((id) => store.get(id)))
          return found.every((one) => one === undefined)
        }
        await vi.waitUntil(areExpired, PATIENT)
        const { deadLetters, nextCursor } = await store.list({ limit: 300 })
        expect(deadLetters.map(({ id }) => id)).toEqual(['long'])
        expect(nextCursor).toBeUndefined()
        expect(await store.delete('brief 0')).toBe(false)
        expect(await store.replay('brief 1', sent)).toBe(false)
        expect(await store.stats()).toMatchObject({
          count: 1,
          oldestSavedAt: START - 1,
          byClass: { schema: 1 },
          bySink: { sentry: 1 },
        })
        await world.expectWhole()
      }, connect),
    )
  }

  it(
    'leaves no key, even without any calls',
    onWorld(async (world) => {
      const store = await world.store({ retention: '2s' })
      await store.save(deadLetter('a'))
      await store.save(deadLetter('b'))
      expect(await world.keys()).toHaveLength(5)
      await vi.waitUntil(async () => (await world.keys()).length === 0, PATIENT)
      expect(await store.stats()).toMatchObject({ count: 0, bytes: 0, oldestSavedAt: undefined })
    }),
  )

  it(
    'is removed by later saves, and not counted by cleanup',
    onWorld(async (world) => {
      const store = await world.store()
      await store.save(deadLetter('later', { savedAt: START + 1_000 }))
      // Long enough for a busy machine to save all before the first of them expires.
      const brief = await world.store({ retention: '6s' })
      await saveAll(brief, 120, 'brief')
      await vi.waitUntil(async () => (await brief.get('brief 119')) === undefined, PATIENT)
      await store.save(deadLetter('one'))
      await world.expectWhole()
      const { command } = await world.client()
      expect(await command('ZCARD', `{${world.prefix}}:index`)).toBe(72)
      expect(await store.cleanup({ savedBefore: START + 1_000 })).toBe(1)
      await world.expectWhole()
    }),
  )

  it(
    'makes room in a full store',
    onWorld(async (world) => {
      const narrow = await world.store({ maxBytes: 60_000 })
      await narrow.save(deadLetter('small'))
      // Long enough for a busy machine to fill it before the first of them expires.
      const brief = await world.store({ retention: '6s', maxEntries: 151 })
      await saveAll(brief, 150, 'brief')
      const full = brief.save(deadLetter('one more'))
      await expect(full).rejects.toMatchObject({ code: 'DLQ_FULL' })
      await vi.waitUntil(async () => (await brief.get('brief 149')) === undefined, PATIENT)
      const large = 'x'.repeat(50_000)
      await narrow.save(deadLetter('large', { body: large }))
      expect((await narrow.stats()).count).toBe(2)
    }),
  )

  it(
    'starts a new retention when the same id is saved again',
    onWorld(async (world) => {
      const brief = await world.store({ retention: '1s' })
      await brief.save(deadLetter('again'))
      await brief.save(deadLetter('once'))
      const store = await world.store()
      await store.save(deadLetter('again', { savedAt: START + 1 }))
      await vi.waitUntil(async () => (await store.get('once')) === undefined, PATIENT)
      expect((await store.get('again'))?.savedAt).toBe(START + 1)
    }),
  )
})

describe.concurrent('counts', () => {
  it(
    'stay correct for any operations in any order',
    onWorld(async (world) => {
      const random = seededRandom(7)
      const stores = [await world.store(), await world.store()] as const
      const step = async () => {
        const store = stores[random.int(2)] ?? stores[0]
        const id = `id ${random.int(31)}`
        const savedAt = START + random.int(1_001)
        const kind = random.int(10)
        if (kind === 0) await store.delete(id)
        else if (kind === 1) await store.replay(id, sent)
        else if (kind === 2)
          await store.replay(id, () => Promise.reject(new Error('no'))).catch(String)
        else if (kind === 3) await store.cleanup({ savedBefore: START + random.int(301) })
        else {
          const body = 'é'.repeat(random.int(501))
          const one = { sink: `sink ${random.int(4)}`, class: random.pick(FAILURE_CLASSES) }
          await store.save(deadLetter(id, { ...one, savedAt, body }))
        }
      }
      for (let round = 0; round < 60; round++) {
        await Promise.all(Array.from({ length: 8 }, step))
        await world.expectWhole()
      }
      const { deadLetters } = await stores[0].list({ limit: 100 })
      const { count, oldestSavedAt } = await stores[1].stats()
      expect(count).toBe(deadLetters.length)
      expect(oldestSavedAt).toBe(deadLetters[0]?.savedAt)
    }),
  )

  it(
    'of bytes match the server within a fifth',
    onWorld(async (world) => {
      const store = await world.store()
      const saving = [200, 2_000].flatMap((size) =>
        Array.from({ length: 1_500 }, (_, i) => {
          const id = `0190a1b2-c3d4-7e5f-8a9b-${String(i).padStart(12, '0')}:loki ${size}`
          return store.save(deadLetter(id, { body: 'x'.repeat(size), savedAt: START + i }))
        }),
      )
      await Promise.all(saving)
      const { command } = await world.client()
      let used = 0
      for (const key of await world.keys()) {
        used += Number(await command('MEMORY', 'USAGE', key, 'SAMPLES', '0'))
      }
      const { bytes } = await store.stats()
      expect(Math.abs(bytes - used) / used).toBeLessThan(0.2)
    }),
  )
})

describe.concurrent('a full store', () => {
  it(
    'still replaces a dead letter, and explains the fix',
    onWorld(async (world) => {
      const store = await world.store({ maxEntries: 2 })
      for (const id of ['a', 'b']) await store.save(deadLetter(id))
      await expect(store.save(deadLetter('c'))).rejects.toMatchObject({
        code: 'DLQ_FULL',
        message: expect.stringContaining('increase "maxEntries"') as unknown,
      })
      await store.save(deadLetter('b', { savedAt: START + 1 }))
      expect((await store.get('b'))?.savedAt).toBe(START + 1)
      await store.replay('a', sent)
      await store.save(deadLetter('c'))
      await world.expectWhole()
    }),
  )
})
