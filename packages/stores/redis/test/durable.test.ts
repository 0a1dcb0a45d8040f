import { services, urlOf } from '@redrive/dev-support'
import { afterAll, afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createClient } from '@redis/client'
import { Redis } from 'ioredis'
import { redisStore } from '../src/index.ts'
import { deadLetter, START } from './samples.ts'
import { CLIENTS, ioredis, nodeRedis, RedisWorld } from './world.ts'
import { BreakingProxy } from './wire.ts'

// These tests kill, stop and fill the server, so they run one after the other on a separate one.
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
            // Not acknowledged: it may or may not exist. Before the kill, the disk was only slow.
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
      // The client has reconnected, and the scripts that the server dropped are sent again.
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
      const { command } = await world.client()
      for (let i = 0; i < 5; i++) await store.save(deadLetter(`n${i}`, { savedAt: START + i }))
      await command('CONFIG', 'SET', 'maxmemory', '1')
      try {
        await expect(store.save(deadLetter('more'))).rejects.toMatchObject({
          code: 'DLQ_FULL',
          message: expect.stringContaining('increase maxmemory') as unknown,
        })
        await world.expectWhole()
        expect((await store.list({ limit: 9 })).deadLetters).toHaveLength(5)
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

describe('a server that does not respond', () => {
  it.each(CLIENTS)('is awaited no longer than the timeout, with %s', async (_, connect) => {
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

/** Options for clients that report the result of a command instead of sending it again. */
const ONE_TRY = {
  '@redis/client': async (proxied: string) => {
    const client = createClient({ url: proxied, socket: { reconnectStrategy: false } })
    client.on('error', () => undefined)
    return { client: await client.connect(), end: () => client.isOpen && client.destroy() }
  },
  ioredis: async (proxied: string) => {
    const client = new Redis(proxied, { retryStrategy: () => null, lazyConnect: true })
    client.on('error', () => undefined)
    await client.connect()
    return { client, end: () => client.disconnect() }
  },
} as const

describe('a connection that is lost', () => {
  /** The error text of either client. */
  const LOST = /closed|ECONNRESET|EPIPE/i
  const LARGE = 'x'.repeat(300_000)

  for (const [name, connectOnce] of Object.entries(ONE_TRY)) {
    it(`during a save rejects it and leaves nothing, with ${name}`, async () => {
      const proxy = await BreakingProxy.to(url)
      const { client, end } = await connectOnce(proxy.url)
      const proxied = redisStore({ client, prefix: world.prefix, retention: '1h' })
      const store = await world.store()
      await proxied.save(deadLetter('before'))
      proxy.left = 100_000
      await expect(proxied.save(deadLetter('large', { body: LARGE }))).rejects.toThrow(LOST)
      await world.expectWhole()
      expect(await store.get('large')).toBeUndefined()
      expect((await store.stats()).count).toBe(1)
      end()
      proxy.close()
    })

    it(`before the response rejects the save and leaves it complete, with ${name}`, async () => {
      const proxy = await BreakingProxy.to(url)
      const { client, end } = await connectOnce(proxy.url)
      const proxied = redisStore({ client, prefix: world.prefix, retention: '1h' })
      const store = await world.store()
      await proxied.save(deadLetter('before'))
      proxy.dropsResponses = true
      await expect(proxied.save(deadLetter('large', { body: LARGE }))).rejects.toThrow(LOST)
      await vi.waitUntil(async () => (await store.get('large')) !== undefined, PATIENT)
      await world.expectWhole()
      await store.save(deadLetter('large', { body: LARGE }))
      expect((await store.stats()).count).toBe(2)
      end()
      proxy.close()
    })
  }

  it('before the response of a claim does not stop the process from sending', async () => {
    const proxy = await BreakingProxy.to(url)
    // By default this client repeats commands without a response.
    const { client, kill } = await ioredis(proxy.url)
    const proxied = redisStore({ client, prefix: world.prefix, retention: '1h' })
    for (const id of ['a', 'b']) await proxied.save(deadLetter(id))
    // So that the server has the script, and the first command is the one without a response.
    expect(await proxied.replay('b', sent)).toBe(true)
    proxy.dropsResponses = true
    const replaying = proxied.replay('a', sent)
    await vi.waitUntil(
      async () => (await world.keys()).some((key) => key.endsWith('claim:a')),
      PATIENT,
    )
    proxy.dropsResponses = false
    expect(await replaying).toBe(true)
    kill()
    proxy.close()
  })
})
