/**
 * One of the two common clients, distinguished by the one method with a different spelling. Their types are
 * repeated here by shape: importing them would make both packages required.
 */
export type RedisClient = NodeRedisClient | IoredisClient

/** The used part of a client, cluster or pool of `@redis/client` (or `redis`). */
export interface NodeRedisClient {
  evalSha(sha: string, input: ScriptInput): Promise<unknown>
  eval(script: string, input: ScriptInput): Promise<unknown>
}

export interface ScriptInput {
  keys: string[]
  arguments: string[]
}

/** The used part of a client or cluster of `ioredis`. */
export interface IoredisClient {
  evalsha(sha: string, keyCount: number, ...keysAndArguments: string[]): Promise<unknown>
  eval(script: string, keyCount: number, ...keysAndArguments: string[]): Promise<unknown>
}

/** The functions that the store needs from a client. */
export interface RedisPort {
  evalSha(sha: string, keys: readonly string[], args: readonly string[]): Promise<unknown>
  eval(script: string, keys: readonly string[], args: readonly string[]): Promise<unknown>
}

export function portOf(client: RedisClient): RedisPort {
  return 'evalSha' in client ? nodeRedis(client) : ioredis(client)
}

export function isClient(client: unknown): client is RedisClient {
  if (typeof client !== 'object' || client === null) return false
  return 'eval' in client && ('evalSha' in client || 'evalsha' in client)
}

const nodeRedis = (client: NodeRedisClient): RedisPort => ({
  evalSha: (sha, keys, args) => client.evalSha(sha, { keys: [...keys], arguments: [...args] }),
  eval: (script, keys, args) => client.eval(script, { keys: [...keys], arguments: [...args] }),
})

const ioredis = (client: IoredisClient): RedisPort => ({
  evalSha: (sha, keys, args) => client.evalsha(sha, keys.length, ...keys, ...args),
  eval: (script, keys, args) => client.eval(script, keys.length, ...keys, ...args),
})
