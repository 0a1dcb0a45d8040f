/**
 * One of the two common clients, distinguished by the one method with a different spelling. Their types are
 * repeated here by shape: importing them would make both packages required.
 */
export type RedisClient = NodeRedisClient | IoredisClient

/** The used part of a client, cluster or pool of `@redis/client` (or `redis`). */
export interface NodeRedisClient {
  evalSha(sha: string, input: ScriptInput): Promise<unknown>
  eval(script: string, input: ScriptInput): Promise<unknown>
  /** Returns the same client with other types of replies. Only transports and sources need it. */
  withTypeMapping?(
    types: Readonly<Record<number, unknown>>,
  ): Pick<NodeRedisClient, 'evalSha' | 'eval'>
}

export interface ScriptInput {
  keys: string[]
  arguments: (string | Buffer)[]
}

/** The used part of a client or cluster of `ioredis`. */
export interface IoredisClient {
  evalsha(sha: string, keyCount: number, ...keysAndArguments: Argument[]): Promise<unknown>
  eval(script: string, keyCount: number, ...keysAndArguments: Argument[]): Promise<unknown>
}

/** Methods that each ioredis client has and its types do not list. */
interface IoredisBytes {
  evalshaBuffer: IoredisClient['evalsha']
  evalBuffer: IoredisClient['eval']
}

/** The functions that Redrive needs from a client. */
export interface RedisPort {
  evalSha(sha: string, keys: readonly string[], args: readonly Argument[]): Promise<unknown>
  eval(script: string, keys: readonly string[], args: readonly Argument[]): Promise<unknown>
}

export type Argument = string | Buffer

/** Returns the client as a port whose replies contain text or bytes. */
export function portOf(client: RedisClient, replies: 'text' | 'bytes'): RedisPort {
  if ('evalSha' in client) {
    return nodeRedis(replies === 'bytes' ? (client.withTypeMapping?.(AS_BYTES) ?? client) : client)
  }
  return replies === 'bytes' ? ioredisBytes(client) : ioredis(client)
}

/** The type of texts in the protocol: `$`. */
const BLOB_STRING = 36
const AS_BYTES = { [BLOB_STRING]: Buffer }

export function isClient(client: unknown): client is RedisClient {
  if (typeof client !== 'object' || client === null) return false
  return 'eval' in client && ('evalSha' in client || 'evalsha' in client)
}

/** Checks for a client whose replies can contain bytes. */
export function isByteClient(client: unknown): client is RedisClient {
  if (!isClient(client)) return false
  return 'evalSha' in client ? 'withTypeMapping' in client : 'evalshaBuffer' in client
}

const nodeRedis = (client: Pick<NodeRedisClient, 'evalSha' | 'eval'>): RedisPort => ({
  evalSha: (sha, keys, args) => client.evalSha(sha, { keys: [...keys], arguments: [...args] }),
  eval: (script, keys, args) => client.eval(script, { keys: [...keys], arguments: [...args] }),
})

const ioredis = (client: IoredisClient): RedisPort => ({
  evalSha: (sha, keys, args) => client.evalsha(sha, keys.length, ...keys, ...args),
  eval: (script, keys, args) => client.eval(script, keys.length, ...keys, ...args),
})

function ioredisBytes(client: IoredisClient): RedisPort {
  const { evalshaBuffer, evalBuffer } = client as IoredisClient & IoredisBytes
  return ioredis({ evalsha: evalshaBuffer.bind(client), eval: evalBuffer.bind(client) })
}
