import { emptyDatabase, poolOn } from '@redrive/dev-support'
import { exerciseStore } from '@redrive/testing'
import { afterAll, describe, it } from 'vitest'
import { migrate } from '../src/index.ts'
import { PostgresWorld } from './world.ts'

const url = await emptyDatabase('redrive_store_contract')
const pool = poolOn(url, 2)
await migrate(pool)
afterAll(() => pool.end())

exerciseStore({
  runner: { describe, it },
  name: 'postgres',
  open: () => new PostgresWorld(url),
  crash: (world, store) => world.crash(store),
  bounded: () => new PostgresWorld(url, { maxEntries: 20 }),
})
