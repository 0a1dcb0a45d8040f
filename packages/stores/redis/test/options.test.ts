import { urlOf } from '@redrive/dev-support'
import { describe, expect, it } from 'vitest'
import { checkRedis, type RedisStoreOptions, redisStore } from '../src/index.ts'
import { CLIENTS } from './world.ts'

describe('options', () => {
  it('are rejected with all problems together', () => {
    const options = {
      client: {},
      prefix: 'a{b}',
      retention: '1ms',
      maxEntries: 0,
      maxBytes: 1.5,
      lease: '2h',
      timeout: 'soon',
    } as unknown as RedisStoreOptions
    expect(() => redisStore(options)).toThrow(
      expect.objectContaining({
        code: 'POLICY_INVALID',
        problems: [
          'client: expected a client of @redis/client or ioredis',
          'prefix: expected letters, digits, dots, colons, - or _, got "a{b}"',
          'maxEntries: expected a whole number of at least 1, got 0',
          'maxBytes: expected a whole number of at least 1, got 1.5',
          "retention: expected a duration from '1s' to '3650d', got \"1ms\"",
          "lease: expected a duration from '1s' to '1h', got \"2h\"",
          "timeout: expected a duration from '1ms' to '1m', got \"soon\"",
        ],
      }),
    )
  })
})

describe('checkRedis', () => {
  const serverWith = (info: string) => ({ info: () => Promise.resolve(info) })

  it('reports a policy that removes dead letters, also one for keys that expire', async () => {
    for (const policy of ['allkeys-lru', 'volatile-ttl']) {
      const info = `# Memory\r\nmaxmemory:1000\r\nmaxmemory_policy:${policy}\r\naof_enabled:1\r\n`
      const [sentence, ...others] = await checkRedis(serverWith(info))
      expect(sentence).toContain(`maxmemory-policy is "${policy}"`)
      expect(others).toEqual([])
    }
  })

  it('accepts a policy that never applies', async () => {
    const info = 'maxmemory:0\r\nmaxmemory_policy:allkeys-lru\r\naof_enabled:1\r\n'
    expect(await checkRedis(serverWith(info))).toEqual([])
  })

  it('reports a server without an append-only file', async () => {
    const info = 'maxmemory:1000\r\nmaxmemory_policy:noeviction\r\naof_enabled:0\r\n'
    expect(await checkRedis(serverWith(info))).toEqual([
      expect.stringContaining('appendonly is "no"'),
    ])
  })

  it.each(CLIENTS)('reads a real server with %s', async (_, connect) => {
    const { client, kill } = await connect(await urlOf('redis'))
    expect(await checkRedis(client)).toEqual([])
    kill()
  })
})
