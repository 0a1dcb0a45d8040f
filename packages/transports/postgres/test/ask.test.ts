import { Pool } from 'pg'
import { expect, test } from 'vitest'
import { guard } from '../src/ask.ts'

test('a pool gets one listener, however often and through however many wrappers it is passed', () => {
  const pool = new Pool()
  for (let times = 0; times < 20; times += 1) guard(new Proxy(pool, {}))
  expect(pool.listenerCount('connect')).toBe(1)
  expect(pool.listenerCount('error')).toBe(1)
})
