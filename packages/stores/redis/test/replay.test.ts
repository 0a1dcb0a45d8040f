import type { StoredDeadLetter } from '@redrive/runtime'
import { FakeClock } from '@redrive/testing'
import { describe, expect, it, vi } from 'vitest'
import { redisStore } from '../src/index.ts'
import { onWorld, PATIENT, saveAll, sent } from './rig.ts'
import { deadLetter } from './samples.ts'

describe.concurrent('a claim', () => {
  it(
    'is renewed while it is being sent',
    onWorld(async (world) => {
      const clock = new FakeClock()
      const store = await world.store({ clock, lease: '30s' })
      const { command } = await world.look()
      await store.save(deadLetter('a'))
      const claim = `{${world.prefix}}:claim:a`
      await store.replay('a', async () => {
        for (let round = 0; round < 3; round++) {
          await command('PEXPIRE', claim, '5000')
          await clock.advance('10s')
          await vi.waitUntil(async () => Number(await command('PTTL', claim)) > 20_000, PATIENT)
          // The next one is waited for only when the answer of this one is here.
          await vi.waitUntil(() => clock.pending > 0, PATIENT)
        }
      })
      expect(clock.pending).toBe(0)
      expect(await command('EXISTS', claim)).toBe(0)
    }),
  )

  it(
    'that was lost to someone else changes nothing at the end',
    onWorld(async (world) => {
      const store = await world.store()
      const { command } = await world.look()
      await store.save(deadLetter('a'))
      const claim = `{${world.prefix}}:claim:a`
      const overtaken = async () => void (await command('SET', claim, 'of someone else'))
      expect(await store.replay('a', overtaken)).toBe(true)
      expect(await command('GET', claim)).toBe('of someone else')
      expect((await store.get('a'))?.id).toBe('a')
      await command('DEL', claim)
      const refused = async () => {
        await overtaken()
        throw new Error('down')
      }
      await expect(store.replay('a', refused)).rejects.toThrow('down')
      expect(await command('GET', claim)).toBe('of someone else')
    }),
  )

  it(
    'that lapsed unnoticed does not keep what the sink has',
    onWorld(async (world) => {
      const store = await world.store()
      const { command } = await world.look()
      await store.save(deadLetter('a'))
      await store.replay('a', async () => void (await command('DEL', `{${world.prefix}}:claim:a`)))
      expect(await store.get('a')).toBeUndefined()
      await world.expectWhole()
    }),
  )

  it(
    'of a dead process is free after the lease',
    onWorld(async (world) => {
      const dying = await world.store({ lease: '1s' })
      const store = await world.store()
      await store.save(deadLetter('a'))
      let isSending = false
      void dying.replay('a', () => {
        isSending = true
        return new Promise(() => undefined)
      })
      await vi.waitUntil(() => isSending, PATIENT)
      world.crash(dying)
      expect(await store.replay('a', sent)).toBe(false)
      await vi.waitUntil(() => store.replay('a', sent), PATIENT)
    }),
  )
})

describe.concurrent('a batch', () => {
  it(
    'rejects when the server does, and does not count that as a failure of the sink',
    onWorld(async (world) => {
      const store = await world.store()
      await saveAll(store, 20)
      let count = 0
      const send = async (_: StoredDeadLetter) => {
        count += 1
        if (count === 5) world.crash(store)
      }
      await expect(store.replayBatch({ most: 20, atOnce: 2 }, send)).rejects.toThrow(/closed/i)
      expect(count).toBeLessThan(8)
    }),
  )

  it(
    'is as large as it is asked to be',
    onWorld(async (world) => {
      const store = await world.store()
      await saveAll(store, 620)
      const answer = await store.replayBatch({ most: 610, atOnce: 4 }, sent)
      expect(answer).toEqual({ replayed: 610, failed: 0 })
      expect((await store.list({ most: 20 })).deadLetters[0]?.id).toBe('n 610')
      await world.expectWhole()
    }),
  )
})

describe.concurrent('close', () => {
  it(
    'waits for what is being sent, leaves the rest of a batch, and leaves the client open',
    onWorld(async (world) => {
      const { client, command } = await world.look()
      const store = redisStore({ client, prefix: world.prefix, retention: '1h' })
      await saveAll(store, 3)
      const { promise, resolve } = Promise.withResolvers<void>()
      let sends = 0
      const batch = store.replayBatch({ most: 3 }, () => {
        sends += 1
        return promise
      })
      await vi.waitUntil(() => sends === 1, PATIENT)
      let isClosed = false
      const closing = store.close().then(() => {
        isClosed = true
      })
      await command('PING')
      expect(isClosed).toBe(false)
      resolve()
      await closing
      expect(await batch).toEqual({ replayed: 1, failed: 0 })
      expect(sends).toBe(1)
      expect(await world.keys()).toHaveLength(5)
      expect(await command('PING')).toBe('PONG')
    }),
  )
})
