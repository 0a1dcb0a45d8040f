import type { DeadLetterStore } from '@redrive/runtime'
import { type RedisStoreOptions, resolveOptions } from './options.ts'
import { RedisStore } from './store.ts'

export { checkRedis, type InformedClient } from './check.ts'
export type {
  IoredisClient,
  NodeRedisClient,
  RedisClient,
  ScriptInput,
} from '@redrive/redis-internal'
export type { RedisStoreOptions } from './options.ts'

/** Creates a dead-letter store in Redis or Valkey, shared by all processes with the same prefix. */
export function redisStore(options: RedisStoreOptions): DeadLetterStore {
  return new RedisStore(resolveOptions(options))
}
