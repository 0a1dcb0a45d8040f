import { ANSWER_MS, answerWithin, Reading } from '../reading.ts'
import type { TlsOptions } from '../tls.ts'
import type { RedisFacts } from './facts.ts'

export interface RedisOptions {
  /** The address, `redis://user:password@host:6379`; `rediss://` requires TLS. Of a cluster: one of its servers. */
  readonly url: string
  /** Certificates for `rediss://`. Default: the authorities of Node.js, and no client certificate. */
  readonly tls?: TlsOptions
  /** Maximum time for one answer of the server, in ms. Default 10,000. */
  readonly timeoutMs?: number
}

const NOTHING: Omit<RedisFacts, 'server' | 'unreadable'> = {
  version: undefined,
  role: undefined,
  replicas: 0,
  isAppendOnly: undefined,
  appendFsync: undefined,
  evictionPolicy: undefined,
  memory: undefined,
  failedWrites: [],
}

/** Reads the live settings of the server. Changes nothing, and does not throw when a fact cannot be read. */
export async function readRedis(options: RedisOptions): Promise<RedisFacts> {
  const { timeoutMs = ANSWER_MS } = options
  const server = new URL(options.url).host
  const reading = new Reading()
  const { unreadable } = reading
  const about = { allow: 'check the address, TLS, user and password', hides: 'loss' } as const
  const connection = await reading.fact({ what: 'server', ...about }, () =>
    open(options, timeoutMs),
  )
  if (connection === undefined) return { ...NOTHING, server, unreadable }
  try {
    const run = (what: string, ...command: readonly string[]) =>
      reading.fact({ what, allow: ALLOW, hides: 'loss' }, () =>
        answerWithin(timeoutMs, connection.sendCommand(command)),
      )
    const info = fieldsIn(await run('INFO', 'INFO'))
    // Some providers refuse CONFIG. Only an append-only file needs it.
    const config =
      info?.['aof_enabled'] === '1'
        ? await run('appendfsync', 'CONFIG', 'GET', 'appendfsync')
        : undefined
    const facts = info === undefined ? NOTHING : factsIn(info)
    return { ...facts, server, appendFsync: secondOf(config), unreadable }
  } finally {
    connection.destroy()
  }
}

const ALLOW = 'allow the user to read them: ACL SETUSER USER +info +config|get'

async function open({ url, tls }: RedisOptions, timeoutMs: number) {
  // Loaded only here: a doctor of other brokers needs no client of Redis.
  const { createClient } = await import('@redis/client')
  const secure = tls === undefined ? {} : { tls: true as const, ...tls }
  const client = createClient({
    url,
    socket: { ...secure, reconnectStrategy: false, connectTimeout: timeoutMs },
    // Replies are lists, as the checks expect them.
    RESP: 2,
  })
  // The request that fails reports why.
  client.on('error', () => undefined)
  try {
    await answerWithin(timeoutMs, client.connect())
  } catch (error) {
    // A server that accepts a connection and never responds leaves it open.
    if (client.isOpen) client.destroy()
    throw error
  }
  return client
}

type Fields = Readonly<Record<string, string>>

/** Returns the fields of a reply to INFO, which has lines such as `aof_enabled:1`. */
function fieldsIn(reply: unknown): Fields | undefined {
  if (typeof reply !== 'string') return undefined
  const pairs = reply.matchAll(/^(\w+):(.*?)\r?$/gm)
  return Object.fromEntries([...pairs].map(([, name = '', value = '']) => [name, value]))
}

/** Returns the value in a reply to CONFIG GET with one name. */
const secondOf = (reply: unknown): string | undefined =>
  Array.isArray(reply) && typeof reply[1] === 'string' ? reply[1] : undefined

function factsIn(info: Fields): Omit<RedisFacts, 'server' | 'unreadable'> {
  const failed = (field: string) => info[field] === 'err'
  return {
    version: info['redis_version'],
    role: info['role'] === 'slave' ? 'replica' : 'primary',
    replicas: Number(info['connected_slaves'] ?? 0),
    isAppendOnly: info['aof_enabled'] === '1',
    appendFsync: undefined,
    evictionPolicy: info['maxmemory_policy'],
    memory: { used: Number(info['used_memory'] ?? 0), most: Number(info['maxmemory'] ?? 0) },
    failedWrites: [
      ...(failed('rdb_last_bgsave_status') ? ['snapshot'] : []),
      ...(failed('aof_last_write_status') ? ['append-only file'] : []),
    ],
  }
}
