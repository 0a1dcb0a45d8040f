/** Redis: a real server, and scripts that return the errors of a server in trouble. */
import { createClient, type RedisClientOptions } from '@redis/client'
import { Redis, type RedisOptions } from 'ioredis'
import {
  MISSING_HOST,
  PATIENCE_MS,
  type Provocations,
  type Provoke,
  type Site,
  WAIT_MS,
} from '../site.ts'

/** Errors of a server in a state that a test cannot create on a shared server. */
const STATES: Readonly<Record<string, string>> = {
  'server is loading': 'LOADING Redis is loading the dataset in memory',
  'server is a replica': "READONLY You can't write against a read only replica.",
  'primary is down': 'MASTERDOWN Link with MASTER is down.',
  'cluster is down': 'CLUSTERDOWN The cluster is down',
  'slot moves': 'TRYAGAIN Multiple keys request during rehashing of slot',
  'slot moved': 'MOVED 3999 127.0.0.1:6381',
  'server is busy': 'BUSY Redis is busy running a script.',
  'out of memory': "OOM command not allowed when used memory > 'maxmemory'.",
  'cannot write to disk': 'MISCONF Redis cannot persist on disk.',
  'too few replicas': 'NOREPLICAS Not enough good replicas to write.',
  'no permission': 'NOPERM this user has no permissions to run this command',
  'login required': 'NOAUTH Authentication required.',
  'too many clients': 'ERR max number of clients reached',
}

const script = (error: string) => ['EVAL', 'return redis.error_reply(ARGV[1])', '0', error]

/** Commands that the real server rejects. */
const COMMANDS: Readonly<Record<string, readonly string[]>> = {
  ...Object.fromEntries(Object.entries(STATES).map(([name, error]) => [name, script(error)])),
  'key of another type': ['LPUSH', 'redrive:text', '1'],
  'unknown command': ['NOSUCHCOMMAND'],
}

/** Sends commands in order. The last one fails. */
type Send = (url: string, commands: readonly (readonly string[])[]) => Promise<unknown>

function commandsOf(send: Send): Readonly<Record<string, Provoke>> {
  const setUp = ['SET', 'redrive:text', 'any']
  const rows = Object.entries(COMMANDS).map(([name, command]): [string, Provoke] => [
    name,
    async (site) => send(await site.url('redis'), [setUp, command]),
  ])
  return Object.fromEntries(rows)
}

async function withWrongPassword(site: Site): Promise<string> {
  const url = new URL(await site.url('redis'))
  url.username = 'app'
  url.password = 'wrong'
  return url.href
}

type NodeRedis = ReturnType<typeof createClient>

async function withNodeRedis(
  url: string,
  work: (client: NodeRedis) => Promise<unknown>,
  options: RedisClientOptions = {},
): Promise<unknown> {
  const socket = { connectTimeout: PATIENCE_MS, reconnectStrategy: false as const }
  const client = createClient({ url, socket, ...options } as RedisClientOptions) as NodeRedis
  client.on('error', () => undefined)
  try {
    await client.connect()
    return await work(client)
  } finally {
    if (client.isOpen) client.destroy()
  }
}

const ping = (client: { readonly ping: () => Promise<unknown> }) => client.ping()

/** Waits for an item on one connection, while another one closes it. */
async function loseConnection(site: Site): Promise<unknown> {
  const url = await site.url('redis')
  return withNodeRedis(url, async (client) => {
    const id = await client.clientId()
    const waiting = client.sendCommand(['BLPOP', 'redrive:none', '0'])
    // It may fail before it is awaited.
    waiting.catch(() => undefined)
    const kill = ['CLIENT', 'KILL', 'ID', String(id)]
    await withNodeRedis(url, (other) => other.sendCommand(kill))
    return waiting
  })
}

const NODE_REDIS = {
  'closed port': async (site: Site) =>
    withNodeRedis(`redis://127.0.0.1:${await site.closedPort()}`, ping),
  'host does not exist': () => withNodeRedis(`redis://${MISSING_HOST}`, ping),
  'no response': async (site: Site) =>
    withNodeRedis(`redis://127.0.0.1:${await site.silentPort()}`, ping, {
      socket: { socketTimeout: WAIT_MS, reconnectStrategy: false },
    }),
  'connection reset': async (site: Site) =>
    withNodeRedis(`redis://127.0.0.1:${await site.resetPort()}`, ping),
  'password rejected': async (site: Site) => withNodeRedis(await withWrongPassword(site), ping),
  'connection lost during a command': loseConnection,
  'client closed': async (site: Site) =>
    withNodeRedis(await site.url('redis'), async (client) => {
      await client.close()
      return client.ping()
    }),
  'client offline': async (site: Site) => {
    const url = `redis://127.0.0.1:${await site.closedPort()}`
    const client = createClient({ url, disableOfflineQueue: true })
    client.on('error', () => undefined)
    client.connect().catch(() => undefined)
    return client.ping().finally(() => client.destroy())
  },
  ...commandsOf((url, commands) =>
    withNodeRedis(url, async (client) => {
      for (const command of commands) await client.sendCommand(command)
    }),
  ),
}

type Settings = Omit<RedisOptions, 'replyMapping'>

async function withIoredis(
  url: string,
  work: (client: Redis) => Promise<unknown>,
  options: Settings = {},
): Promise<unknown> {
  const settings: Settings = { retryStrategy: () => null, ...options }
  const client = new Redis(url, settings)
  client.on('error', () => undefined)
  try {
    return await work(client)
  } finally {
    client.disconnect()
  }
}

const IOREDIS = {
  'closed port': async (site: Site) =>
    withIoredis(`redis://127.0.0.1:${await site.closedPort()}`, ping),
  'closed port, all retries used': async (site: Site) =>
    withIoredis(`redis://127.0.0.1:${await site.closedPort()}`, ping, {
      maxRetriesPerRequest: 1,
      retryStrategy: () => 1,
    }),
  'host does not exist': () => withIoredis(`redis://${MISSING_HOST}`, ping),
  'no response': async (site: Site) =>
    withIoredis(`redis://127.0.0.1:${await site.silentPort()}`, ping, { commandTimeout: WAIT_MS }),
  'connection reset': async (site: Site) =>
    withIoredis(`redis://127.0.0.1:${await site.resetPort()}`, ping),
  'password rejected': async (site: Site) => withIoredis(await withWrongPassword(site), ping),
  'client closed': async (site: Site) =>
    withIoredis(await site.url('redis'), async (client) => {
      await client.quit()
      return client.ping()
    }),
  'client offline': async (site: Site) =>
    withIoredis(`redis://127.0.0.1:${await site.closedPort()}`, ping, {
      enableOfflineQueue: false,
    }),
  ...commandsOf((url, commands) =>
    withIoredis(url, async (client) => {
      for (const [name = '', ...args] of commands) await client.call(name, ...args)
    }),
  ),
}

export const REDIS_CLIENTS: Provocations = { '@redis/client': NODE_REDIS, ioredis: IOREDIS }
