import { randomUUID } from 'node:crypto'
import type { IoredisClient, NodeRedisClient, Script, ScriptInput } from '@redrive/redis-internal'
import type { Transport } from '@redrive/runtime'
import type { SentMessage, TransportFault, TransportFixture } from '@redrive/testing'
import type { Cluster, Redis } from 'ioredis'
import {
  type RedisStreamOptions,
  redisStream,
  redisStreamSource,
  topologyOf,
} from '../src/index.ts'
import { CLAIM, END, HAND_OFF } from '../src/scripts.ts'

export interface RedisWorld extends TransportFixture {
  readonly stream: string
  transport(fault?: TransportFault, options?: Partial<RedisStreamOptions>): Transport
  /** Drops the response of the next claim: the server grants entries that never arrive. */
  dropClaim(transport: Transport): void
  /** Drops the response of the next end of claims without a copy. */
  dropEnd(transport: Transport): void
}

const GROUP = 'billing'
const OTHER = 'shipping'
/** 1 s: the shortest lease that a transport accepts. */
const SHORT_LEASE_MS = 1_000

/**
 * A new stream, with transports whose requests a test can observe and cut. With a client of `@redis/client`, transports
 * use that one.
 */
export function redisWorld(client: Redis | Cluster, nodeRedis?: NodeRedisClient): RedisWorld {
  const stream = `orders-${randomUUID()}`
  const processes = new Map<Transport, Process>()
  let isRefusing = true

  function transportOf(
    group: string,
    fault?: TransportFault,
    options: Partial<RedisStreamOptions> = {},
  ): Transport {
    const process = new Process(client, stream, group, fault, () => isRefusing)
    const made = redisStream({
      client: nodeRedis === undefined ? process.client : process.nodeRedis(nodeRedis),
      ...{ stream, group, timeout: '30s' },
      ...options,
    })
    processes.set(made, process)
    return made
  }

  const sourceOf = (group: string) =>
    redisStreamSource({ client: nodeRedis ?? client, stream, group, timeout: '30s' })

  return {
    stream,
    transport: (fault, options) => transportOf(GROUP, fault, options),
    lease: {
      ms: SHORT_LEASE_MS,
      transport: () => transportOf(GROUP, undefined, { lease: SHORT_LEASE_MS }),
    },
    otherGroup: () => ({ transport: () => transportOf(OTHER), source: () => sourceOf(OTHER) }),
    source: () => sourceOf(GROUP),
    send: (message) => sendTo(client, stream, message),
    backlog: () => backlogOf(client, stream),
    crash: (of) => processes.get(of)?.die(),
    stealOwnership: (of) => processes.get(of)?.loseLeases(),
    dropResponse: (of) => processes.get(of)?.dropResponse(HAND_OFF),
    dropEnd: (of) => processes.get(of)?.dropResponse(END),
    dropClaim: (of) => processes.get(of)?.dropResponse(CLAIM),
    retentionMs: async () => client.pttl(topologyOf(stream, GROUP).deadLetters),
    heal: () => {
      isRefusing = false
    },
    async close() {
      const keys = [GROUP, OTHER].flatMap((group) => {
        const { group: _, ...named } = topologyOf(stream, group)
        return Object.values(named)
      })
      await client.del(keys)
    },
  }
}

async function sendTo(
  client: Redis | Cluster,
  stream: string,
  message: SentMessage,
): Promise<string> {
  const { bytes, key, headers = {}, contentType, type } = message
  const fields: (string | Buffer)[] = [
    'body',
    Buffer.from(bytes),
    ...Object.entries(headers).flat(),
  ]
  if (key !== undefined) fields.push('redrive-key', key)
  if (contentType !== undefined) fields.push('content-type', contentType)
  if (type !== undefined) fields.push('type', type)
  return `${stream}/${await client.xadd(stream, '*', ...fields)}`
}

/** Counts messages that are not done: unread, in flight, and retries. */
async function backlogOf(client: Redis | Cluster, stream: string): Promise<number> {
  const { own, retry } = topologyOf(stream, GROUP)
  const counted = await client.eval(BACKLOG, 3, own, stream, retry, GROUP)
  return Number(counted)
}

const BACKLOG = `
local total = redis.call('ZCARD', KEYS[3])
for i = 1, 2 do
  if redis.call('EXISTS', KEYS[i]) == 1 then
    local last, pending = '0-0', 0
    for _, info in ipairs(redis.call('XINFO', 'GROUPS', KEYS[i])) do
      if info[2] == ARGV[1] then last, pending = info[8], info[6] end
    end
    total = total + pending + #redis.call('XRANGE', KEYS[i], '(' .. last, '+')
  end
end
return total`

type Arguments = readonly (string | Buffer)[]

/** The process of a transport, which can crash. Its scripts are observed on their way to the server. */
class Process {
  readonly client: IoredisClient
  readonly #redis: Redis | Cluster
  readonly #streams: readonly string[]
  readonly #group: string
  readonly #fault: TransportFault | undefined
  readonly #isRefusing: () => boolean
  readonly #running = new Set<Promise<unknown>>()
  #consumer: string | undefined
  #isAlive = true
  #dropped: Script | undefined

  constructor(
    redis: Redis | Cluster,
    stream: string,
    group: string,
    fault: TransportFault | undefined,
    isRefusing: () => boolean,
  ) {
    this.#redis = redis
    this.#streams = [topologyOf(stream, group).own, stream]
    this.#group = group
    this.#fault = fault
    this.#isRefusing = isRefusing
    const run = (command: 'evalsha' | 'eval', replies: 'call' | 'callBuffer') => {
      return (script: string, keyCount: number, ...args: (string | Buffer)[]) =>
        this.#run(script, args.slice(keyCount), () =>
          redis[replies](command, script, keyCount, ...args),
        )
    }
    const methods = {
      evalsha: run('evalsha', 'call'),
      eval: run('eval', 'call'),
      evalshaBuffer: run('evalsha', 'callBuffer'),
      evalBuffer: run('eval', 'callBuffer'),
    }
    this.client = methods
  }

  /** Returns a client with the requests of the process on a client of the other library. */
  nodeRedis(real: NodeRedisClient): NodeRedisClient {
    const observed = ({ evalSha, eval: evaluate }: Pick<NodeRedisClient, 'evalSha' | 'eval'>) => ({
      evalSha: (sha: string, input: ScriptInput) =>
        this.#run(sha, input.arguments, () => evalSha(sha, input)),
      eval: (text: string, input: ScriptInput) =>
        this.#run(text, input.arguments, () => evaluate(text, input)),
    })
    const bound = (one: Pick<NodeRedisClient, 'evalSha' | 'eval'>) =>
      observed({ evalSha: one.evalSha.bind(one), eval: one.eval.bind(one) })
    return {
      ...bound(real),
      withTypeMapping: (types) => bound(real.withTypeMapping?.(types) ?? real),
    }
  }

  /** Ends the process like `kill -9`: nothing more is sent, and no response is received. */
  async die(): Promise<void> {
    this.#isAlive = false
    // Requests in flight are executed: the server has received them.
    await Promise.allSettled(this.#running)
    await this.loseLeases()
  }

  /** Ends the leases of the process, so that the test need not wait. */
  async loseLeases(): Promise<void> {
    if (this.#consumer === undefined) return
    for (const stream of this.#streams) {
      await this.#redis.eval(END_LEASES, 1, stream, this.#group, this.#consumer)
    }
  }

  /** Runs the next of these scripts, but loses its response. */
  dropResponse(of: Script): void {
    this.#dropped = of
  }

  async #run(script: string, args: Arguments, send: () => Promise<unknown>): Promise<unknown> {
    if (!this.#isAlive) return never()
    if (isOneOf(CLAIM, script)) this.#consumer = String(args[1])
    const isHandOff = isOneOf(HAND_OFF, script)
    if (isHandOff && this.#fault === 'copies_refused' && this.#isRefusing()) {
      throw new Error("OOM command not allowed when used memory > 'maxmemory'.")
    }
    const running = send()
    this.#running.add(running)
    const reply = await running.finally(() => this.#running.delete(running))
    if (isHandOff && this.#fault === 'dies_halfway') void this.die()
    if (this.#dropped !== undefined && isOneOf(this.#dropped, script)) {
      this.#dropped = undefined
      throw new Error('read ECONNRESET')
    }
    return this.#isAlive ? reply : never()
  }
}

const isOneOf = ({ text, sha }: Script, script: string) => script === sha || script === text

/** Moves the entries of a consumer to a consumer that does not exist, an hour ago. The next claim counts as a crash. */
const END_LEASES = `
for _, one in ipairs(redis.call('XPENDING', KEYS[1], ARGV[1], '-', '+', 10000, ARGV[2])) do
  redis.call('XCLAIM', KEYS[1], ARGV[1], 'gone', 0, one[1], 'IDLE', 3600000, 'JUSTID')
end`

const never = () => new Promise<never>(() => undefined)
