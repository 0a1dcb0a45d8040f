import { describe, expect, it, vi } from 'vitest'
import { type NodeRedisClient, redisStore } from '../src/index.ts'
import { onWorld, PATIENT, saveAll } from './rig.ts'
import { deadLetter, START } from './samples.ts'

describe.concurrent('scripts', () => {
  it(
    'are sent again when the server has dropped them',
    onWorld(async (world) => {
      const store = await world.store()
      const { command } = await world.client()
      await store.save(deadLetter('a'))
      await command('SCRIPT', 'FLUSH')
      await store.save(deadLetter('b'))
      await command('SCRIPT', 'FLUSH')
      expect((await store.list({ limit: 5 })).deadLetters).toHaveLength(2)
      await store.replay('a', async () => void (await command('SCRIPT', 'FLUSH')))
      expect((await store.stats()).count).toBe(1)
    }),
  )

  it(
    'check a bounded number of entries and return a bounded number of bytes, for any size of the store',
    onWorld(async (world) => {
      const { client } = await world.client()
      const answers: number[] = []
      const watched = watch(client as NodeRedisClient, (answer) => {
        answers.push(Buffer.byteLength(JSON.stringify(answer)))
      })
      const store = redisStore({ client: watched, prefix: world.prefix, retention: '1h' })
      await saveAll(store, 1_200)
      await store.save(deadLetter('rare', { savedAt: START + 5_000, sink: 'rare' }))
      answers.length = 0
      const { deadLetters } = await store.list({ filter: { sink: 'rare' }, limit: 10 })
      expect(deadLetters.map(({ id }) => id)).toEqual(['rare'])
      expect(answers).toHaveLength(7)

      const large = 'x'.repeat(700_000)
      for (const id of ['l1', 'l2', 'l3', 'l4', 'l5']) {
        await store.save(deadLetter(id, { savedAt: START + 9_000, sink: 'large', body: large }))
      }
      answers.length = 0
      const page = await store.list({
        filter: { sink: 'large', savedAfter: START + 8_999 },
        limit: 5,
      })
      expect(page.deadLetters.map(({ id }) => id)).toEqual(['l1', 'l2', 'l3', 'l4', 'l5'])
      expect(Math.max(...answers)).toBeLessThan(1_800_000)

      answers.length = 0
      expect(await store.cleanup({ savedBefore: START + 1_000 })).toBe(1_000)
      expect(answers).toHaveLength(21)
      expect((await store.stats()).count).toBe(206)
    }),
  )
})

function watch(client: NodeRedisClient, see: (answer: unknown) => void): NodeRedisClient {
  const seen = async (answer: Promise<unknown>) => {
    see(await answer)
    return answer
  }
  return {
    evalSha: (sha, input) => seen(client.evalSha(sha, input)),
    eval: (script, input) => seen(client.eval(script, input)),
  }
}

describe.concurrent('a server that evicts', () => {
  it.each(['facts', 'entries', 'index'])(
    'loses dead letters with its %s, but no call waits forever',
    (evicted) =>
      onWorld(async (world) => {
        const store = await world.store()
        await saveAll(store, 120)
        const brief = await world.store({ retention: '1s' })
        await saveAll(brief, 120, 'brief')
        const { command } = await world.client()
        await command('DEL', `{${world.prefix}}:${evicted}`)
        await vi.waitUntil(async () => (await brief.get('brief 119')) === undefined, PATIENT)
        await store.stats()
        expect((await store.list({ filter: { sink: 'loki' }, limit: 10 })).deadLetters).toEqual([])
        await store.cleanup({ savedBefore: START + 1_000 })
        expect((await store.list({ limit: 10 })).deadLetters).toEqual([])
        await store.save(deadLetter('next'))
        expect((await store.list({ limit: 10 })).deadLetters).toHaveLength(1)
      })(),
  )
})

describe.concurrent('names', () => {
  it(
    'all keys are on one node of a cluster',
    onWorld(async (world) => {
      const store = await world.store()
      await store.save(deadLetter('{b}'))
      await store.replay('{b}', async () => {
        const keys = await world.keys()
        expect(keys).toHaveLength(6)
        for (const key of keys) expect(key.startsWith(`{${world.prefix}}:`)).toBe(true)
      })
    }),
  )

  it(
    'lone surrogates in a name are accepted, and the dead letter is found again',
    onWorld(async (world) => {
      const store = await world.store()
      await store.save(deadLetter('a', { sink: 'half \ud83d', job: '\ude00 half' }))
      const filter = { sink: 'half \ud83d', job: '\ude00 half' }
      expect((await store.list({ filter, limit: 1 })).deadLetters[0]?.sink).toBe('half \ud83d')
    }),
  )

  it(
    'a foreign cursor is rejected',
    onWorld(async (world) => {
      const store = await world.store()
      await expect(store.list({ limit: 1, cursor: 'bm9uc2Vuc2U' })).rejects.toThrow('not a cursor')
    }),
  )

  it(
    'infinite times are accepted',
    onWorld(async (world) => {
      const store = await world.store()
      await store.save(deadLetter('a', { savedAt: 0 }))
      const filter = { savedAfter: -Infinity, savedBefore: Infinity }
      expect((await store.list({ filter, limit: 1 })).deadLetters).toHaveLength(1)
      expect((await store.list({ filter: { savedBefore: -1 }, limit: 1 })).deadLetters).toEqual([])
      expect(await store.cleanup({ savedBefore: Infinity })).toBe(1)
    }),
  )
})
