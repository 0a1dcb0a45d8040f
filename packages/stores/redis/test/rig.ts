import { urlOf } from '@redrive/dev-support'
import type { DeadLetterStore } from '@redrive/runtime'
import { deadLetter, START } from './samples.ts'
import { type Connect, nodeRedis, RedisWorld } from './world.ts'

const url = await urlOf('redis')
/** Much longer than a busy machine needs. */
export const PATIENT = { timeout: 20_000, interval: 20 }

export const onWorld = (test: (world: RedisWorld) => Promise<void>, connect: Connect = nodeRedis) =>
  async function play(): Promise<void> {
    const world = new RedisWorld(url, connect)
    try {
      await test(world)
    } finally {
      await world.close()
    }
  }

export const sent = (): Promise<void> => Promise.resolve()

/** Saves all concurrently: dead letters that are kept for a second must all exist at one time. */
export const saveAll = (store: DeadLetterStore, count: number, name = 'n'): Promise<unknown> =>
  Promise.all(
    Array.from({ length: count }, (_, i) =>
      store.save(deadLetter(`${name} ${i}`, { savedAt: START + i })),
    ),
  )
