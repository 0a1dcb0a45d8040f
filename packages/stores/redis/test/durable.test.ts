import { services, urlOf } from '@redrive/dev-support'
import { afterAll, afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createClient } from '@redis/client'
import { Redis } from 'ioredis'
import { redisStore } from '../src/index.ts'
import { deadLetter, START } from './samples.ts'
import { CLIENTS, ioredis, nodeRedis, RedisWorld } from './world.ts'
import { Wire } from './wire.ts'

// These kill, stop and fill the server, so they run one after the other on one of their own.
const url = await urlOf('redis-durable')
const durable = (verb: string) => services('do', 'redis-durable', verb)
const PATIENT = { timeout: 20_000, interval: 20 }
const sent = () => Promise.resolve()

let world: RedisWorld
beforeEach(() => {
  world = new RedisWorld(url, nodeRedis)
})
afterEach(() => world.close())
afterAll(() => services('down', 'redis-durable'))

describe('a server that is killed', () => {
  it.each(CLIENTS)(
    'has everything it acknowledged when it is back, with %s',
    async (_, connect) => {
      world = new RedisWorld(url, connect)
      const store = await world.store({ timeout: '1s' })
      const acknowledged = new Set<string>()
      let isKilled = false
      const saveUntilItDies = async (name: string) => {
        for (let i = 0; ; i++) {
          const id = `${name} ${i}`
          try {
            await store.save(deadLetter(id, { savedAt: START + i, body: `body of ${id}` }))
            acknowledged.add(id)
          } catch {
            // Not acknowledged: it may or may not be there. Before the kill, the disk was only slow.
            if (isKilled) return
          }
        }
      }
      const saving = ['a', 'b', 'c', 'd'].map(saveUntilItDies)
      await vi.waitUntil(() => acknowledged.size > 200, PATIENT)
      isKilled = true
      await durable('kill')
      await Promise.all(saving)
      await durable('start')
      await world.expectWhole()
      const fresh = await world.store()
      for (const id of acknowledged) {
        const found = await fresh.get(id)
        expect(Buffer.from(found?.event.bytes ?? []).toString()).toBe(`body of ${id}`)
      }
      expect((await fresh.stats()).count).toBeGreaterThanOrEqual(acknowledged.size)
      // The client has found its way back, and the scripts that the server forgot are sent again.
      await vi.waitUntil(() => saves(store.save(deadLetter('after'))), PATIENT)
    },
  )
})

const saves = (saving: Promise<void>) =>
  saving.then(
    () => true,
    () => false,
  )

describe('a server at its maxmemory', () => {
  it.each(CLIENTS)(
    'rejects with DLQ_FULL and can still be emptied, with %s',
    async (_, connect) => {
      world = new RedisWorld(url, connect)
      const store = await world.store()
      const { command } = await world.look()
      for (let i = 0; i < 5; i++) await store.save(deadLetter(`n${i}`, { savedAt: START + i }))
      await command('CONFIG', 'SET', 'maxmemory', '1')
      try {
        await expect(store.save(deadLetter('more'))).rejects.toMatchObject({
          code: 'DLQ_FULL',
          message: expect.stringContaining('raise maxmemory') as unknown,
        })
        await world.expectWhole()
        expect((await store.list({ most: 9 })).deadLetters).toHaveLength(5)
        expect(await store.replay('n0', sent)).toBe(true)
        await expect(store.replay('n1', () => Promise.reject(new Error('down')))).rejects.toThrow(
          'down',
        )
        expect(await store.delete('n1')).toBe(true)
        expect(await store.cleanup({ savedBefore: START + 3 })).toBe(1)
        expect((await store.stats()).count).toBe(2)
        await world.expectWhole()
      } finally {
        await command('CONFIG', 'SET', 'maxmemory', '0')
      }
      await store.save(deadLetter('more'))
    },
  )
})

describe('a server that does not answer', () => {
  it.each(CLIENTS)('is waited for no longer than the timeout, with %s', async (_, connect) => {
    world = new RedisWorld(url, connect)
    const patient = await world.store()
    const store = await world.store({ timeout: '200ms' })
    await patient.save(deadLetter('before'))
    await durable('pause')
    try {
      await expect(store.save(deadLetter('a'))).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' })
      await expect(store.get('a')).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' })
    } finally {
      await durable('unpause')
    }
    await vi.waitUntil(() => saves(store.save(deadLetter('a'))), PATIENT)
    await world.expectWhole()
    expect((await patient.stats()).count).toBe(2)
  })
})

/** Clients that say what became of a command instead of sending it again. */
const ONE_TRY = {
  '@redis/client': async (wired: string) => {
    const client = createClient({ url: wired, socket: { reconnectStrategy: false } })
    client.on('error', () => undefined)
    return { client: await client.connect(), end: () => client.isOpen && client.destroy() }
  },
  ioredis: async (wired: string) => {
    const client = new Redis(wired, { retryStrategy: () => null, lazyConnect: true })
    client.on('error', () => undefined)
    await client.connect()
    return { client, end: () => client.disconnect() }
  },
} as const

describe('a connection that is lost', () => {
  /** In the words of either client. */
  const LOST = /closed|ECONNRESET|EPIPE/i
  const LARGE = 'x'.repeat(300_000)

  for (const [name, connectOnce] of Object.entries(ONE_TRY)) {
    it(`in the middle of a save rejects it and leaves nothing, with ${name}`, async () => {
      const wire = await Wire.to(url)
      const { client, end } = await connectOnce(wire.url)
      const wired = redisStore({ client, prefix: world.prefix, retention: '1h' })
      const store = await world.store()
      await wired.save(deadLetter('before'))
      wire.left = 100_000
      await expect(wired.save(deadLetter('large', { body: LARGE }))).rejects.toThrow(LOST)
      await world.expectWhole()
      expect(await store.get('large')).toBeUndefined()
      expect((await store.stats()).count).toBe(1)
      end()
      wire.close()
    })

    it(`before the answer rejects the save and leaves it whole, with ${name}`, async () => {
      const wire = await Wire.to(url)
      const { client, end } = await connectOnce(wire.url)
      const wired = redisStore({ client, prefix: world.prefix, retention: '1h' })
      const store = await world.store()
      await wired.save(deadLetter('before'))
      wire.isDeaf = true
      await expect(wired.save(deadLetter('large', { body: LARGE }))).rejects.toThrow(LOST)
      await vi.waitUntil(async () => (await store.get('large')) !== undefined, PATIENT)
      await world.expectWhole()
      await store.save(deadLetter('large', { body: LARGE }))
      expect((await store.stats()).count).toBe(2)
      end()
      wire.close()
    })
  }

  it('before the answer of a claim does not keep the process from sending', async () => {
    const wire = await Wire.to(url)
    // By default this client sends again what was not answered.
    const { client, kill } = await ioredis(wire.url)
    const wired = redisStore({ client, prefix: world.prefix, retention: '1h' })
    for (const id of ['a', 'b']) await wired.save(deadLetter(id))
    // So that the server knows the script, and the first question is the one that is not heard.
    expect(await wired.replay('b', sent)).toBe(true)
    wire.isDeaf = true
    const replaying = wired.replay('a', sent)
    await vi.waitUntil(
      async () => (await world.keys()).some((key) => key.endsWith('claim:a')),
      PATIENT,
    )
    wire.isDeaf = false
    expect(await replaying).toBe(true)
    kill()
    wire.close()
  })
})
