import type { DeadLetterSource } from '@redrive/runtime'
import { expect, it } from 'vitest'
import { connectRedis, endsWith } from '../src/start/redis.ts'

it('ends the client of a source whose server is down', async () => {
  // No server listens on port 1.
  const client = connectRedis('redis://127.0.0.1:1', 'sources.orders.redis', undefined)
  const down = new Error('Redis did not respond.')
  const source = endsWith({ close: () => Promise.reject(down) } as DeadLetterSource, client)
  expect(client.isOpen).toBe(true)
  await expect(source.close()).rejects.toBe(down)
  expect(client.isOpen).toBe(false)
})
