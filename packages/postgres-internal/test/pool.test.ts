import { Pool } from 'pg'
import { expect, test } from 'vitest'
import { ignorePoolErrors } from '../src/pool.ts'

test('adds one listener to a pool that is passed several times or wrapped', () => {
  const pool = new Pool()
  for (let times = 0; times < 20; times += 1) ignorePoolErrors(new Proxy(pool, {}))
  expect(pool.listenerCount('connect')).toBe(1)
  expect(pool.listenerCount('error')).toBe(1)
})
