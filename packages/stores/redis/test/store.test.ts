import { describe, expect, it, vi } from 'vitest'
import { type NodeRedisClient, redisStore } from '../src/index.ts'
import { onWorld, PATIENT, saveAll } from './rig.ts'
import { deadLetter, START } from './samples.ts'

describe.concurrent('scripts', () => {
  it(
    'are sent again when the server has forgotten them',
    onWorld(async (world) => {
      const store = await world.store()
      const { command } = await world.look()
      await store.save(deadLetter('a'))
      await command('SCRIPT', 'FLUSH')
      await store.save(deadLetter('b'))
      await command('SCRIPT', 'FLUSH')
      expect((await store.list({ most: 5 })).deadLetters).toHaveLength(2)
      await store.replay('a', async () => void (await command('SCRIPT', 'FLUSH')))
      expect((await store.stats()).count).toBe(1)
    }),
  )

  it(
    'look at a bounded number and answer a bounded number of bytes, however much there is',
    onWorld(async (world) => {
      const { client } = await world.look()
      const answers: number[] = []
      const watched = watch(client as NodeRedisClient, (answer) => {
        answers.push(Buffer.byteLength(JSON.stringify(answer)))
      })
      const store = redisStore({ client: watched, prefix: world.prefix, retention: '1h' })
      await saveAll(store, 1_200)
      await store.save(deadLetter('rare', { savedAt: START + 5_000, sink: 'rare' }))
      answers.length = 0
      const { deadLetters } = await store.list({ filter: { sink: 'rare' }, most: 10 })
      expect(deadLetters.map(({ id }) => id)).toEqual(['rare'])
      expect(answers).toHaveLength(7)

      const large = 'x'.repeat(700_000)
      for (const id of ['l1', 'l2', 'l3', 'l4', 'l5']) {
        await store.save(deadLetter(id, { savedAt: START + 9_000, sink: 'large', body: large }))
      }
      answers.length = 0
      const page = await store.list({
        filter: { sink: 'large', savedAfter: START + 8_999 },
        most: 5,
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
    'loses dead letters with its %s, and nobody waits for ever because of that',
    (evicted) =>
      onWorld(async (world) => {
        const store = await world.store()
        await saveAll(store, 120)
        const brief = await world.store({ retention: '1s' })
        await saveAll(brief, 120, 'brief')
        const { command } = await world.look()
        await command('DEL', `{${world.prefix}}:${evicted}`)
        await vi.waitUntil(async () => (await brief.get('brief 119')) === undefined, PATIENT)
        await store.stats()
        expect((await store.list({ filter: { sink: 'loki' }, most: 10 })).deadLetters).toEqual([])
        await store.cleanup({ savedBefore: START + 1_000 })
        expect((await store.list({ most: 10 })).deadLetters).toEqual([])
        await store.save(deadLetter('next'))
        expect((await store.list({ most: 10 })).deadLetters).toHaveLength(1)
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
    'half a character in a name does not keep a dead letter out, and it is found again',
    onWorld(async (world) => {
      const store = await world.store()
      await store.save(deadLetter('a', { sink: 'half \ud83d', job: '\ude00 half' }))
      const filter = { sink: 'half \ud83d', job: '\ude00 half' }
      expect((await store.list({ filter, most: 1 })).deadLetters[0]?.sink).toBe('half \ud83d')
    }),
  )

  it(
    'a cursor of something else is refused',
    onWorld(async (world) => {
      const store = await world.store()
      await expect(store.list({ most: 1, after: 'bm9uc2Vuc2U' })).rejects.toThrow('not a cursor')
    }),
  )

  it(
    'times without end are no error',
    onWorld(async (world) => {
      const store = await world.store()
      await store.save(deadLetter('a', { savedAt: 0 }))
      const filter = { savedAfter: -Infinity, savedBefore: Infinity }
      expect((await store.list({ filter, most: 1 })).deadLetters).toHaveLength(1)
      expect((await store.list({ filter: { savedBefore: -1 }, most: 1 })).deadLetters).toEqual([])
      expect(await store.cleanup({ savedBefore: Infinity })).toBe(1)
    }),
  )
})
