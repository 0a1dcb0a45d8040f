import type { StoredDeadLetter } from '@redrive/runtime'
import { FakeClock } from '@redrive/testing'
import { describe, expect, it, vi } from 'vitest'
import { redisStore } from '../src/index.ts'
import { onWorld, PATIENT, saveAll, sent } from './rig.ts'
import { deadLetter } from './samples.ts'

describe.concurrent('a claim', () => {
  it(
    'is renewed during the send',
    onWorld(async (world) => {
      const clock = new FakeClock()
      const store = await world.store({ clock, lease: '30s' })
      const { command } = await world.client()
      await store.save(deadLetter('a'))
      const claim = `{${world.prefix}}:claim:a`
      await store.replay('a', async () => {
        for (let round = 0; round < 3; round++) {
          await command('PEXPIRE', claim, '5000')
          await clock.advance('10s')
          await vi.waitUntil(async () => Number(await command('PTTL', claim)) > 20_000, PATIENT)
          // The next renewal is scheduled only after the response of this one.
          await vi.waitUntil(() => clock.pending > 0, PATIENT)
        }
      })
      expect(clock.pending).toBe(0)
      expect(await command('EXISTS', claim)).toBe(0)
    }),
  )

  it(
    'that another process has taken changes nothing at the end',
    onWorld(async (world) => {
      const store = await world.store()
      const { command } = await world.client()
      await store.save(deadLetter('a'))
      const claim = `{${world.prefix}}:claim:a`
      const overtaken = async () => void (await command('SET', claim, 'of another process'))
      expect(await store.replay('a', overtaken)).toBe(true)
      expect(await command('GET', claim)).toBe('of another process')
      expect((await store.get('a'))?.id).toBe('a')
      await command('DEL', claim)
      const refused = async () => {
        await overtaken()
        throw new Error('down')
      }
      await expect(store.replay('a', refused)).rejects.toThrow('down')
      expect(await command('GET', claim)).toBe('of another process')
    }),
  )

  it(
    'that expired unnoticed does not keep a dead letter that the sink has accepted',
    onWorld(async (world) => {
      const store = await world.store()
      const { command } = await world.client()
      await store.save(deadLetter('a'))
      await store.replay('a', async () => void (await command('DEL', `{${world.prefix}}:claim:a`)))
      expect(await store.get('a')).toBeUndefined()
      await world.expectWhole()
    }),
  )

  it(
    'of a crashed process is free after the lease',
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
      await expect(store.replayBatch({ limit: 20, concurrency: 2 }, send)).rejects.toThrow(
        /closed/i,
      )
      expect(count).toBeLessThan(8)
    }),
  )

  it(
    'is as large as its limit',
    onWorld(async (world) => {
      const store = await world.store()
      await saveAll(store, 620)
      const answer = await store.replayBatch({ limit: 610, concurrency: 4 }, sent)
      expect(answer).toEqual({ replayed: 610, failed: 0 })
      expect((await store.list({ limit: 20 })).deadLetters[0]?.id).toBe('n 610')
      await world.expectWhole()
    }),
  )
})

describe.concurrent('close', () => {
  it(
    'waits for running sends, leaves the rest of a batch, and leaves the client open',
    onWorld(async (world) => {
      const { client, command } = await world.client()
      const store = redisStore({ client, prefix: world.prefix, retention: '1h' })
      await saveAll(store, 3)
      const { promise, resolve } = Promise.withResolvers<void>()
      let sends = 0
      const batch = store.replayBatch({ limit: 3 }, () => {
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
