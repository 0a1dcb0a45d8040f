import { urlOf } from '@redrive/dev-support'
import { exerciseStore } from '@redrive/testing'
import { describe, it } from 'vitest'
import { CLIENTS, RedisWorld } from './world.ts'

const url = await urlOf('redis')

for (const [name, connect] of CLIENTS) {
  exerciseStore({
    runner: { describe, it },
    name: `redis with ${name}`,
    open: () => new RedisWorld(url, connect),
    crash: (world, store) => world.crash(store),
    bounded: () => new RedisWorld(url, connect, { maxBytes: 20_000 }),
  })
}
