import { createClient } from '@redis/client'
import { services, urlOf, urlsOf } from '@redrive/dev-support'
import type { NodeRedisClient } from '@redrive/redis-internal'
import { type ExerciseOptions, exerciseTransport } from '@redrive/testing'
import { Cluster, Redis } from 'ioredis'
import { afterAll, describe, it } from 'vitest'
import { CAPABILITIES } from '../src/capabilities.ts'
import { redisWorld } from './world.ts'

interface ContractOptions extends Pick<ExerciseOptions, 'only' | 'skip'> {
  readonly service: string
  /** The client of the transports. Default: `ioredis`. */
  readonly library?: 'ioredis' | '@redis/client'
}

/** The contract on a server. Scenarios that disturb other tests on it are in separate files. */
export async function contractOn(options: ContractOptions): Promise<void> {
  const { service, library = 'ioredis', ...scenarios } = options
  const client = new Redis(await urlOf(service), { maxRetriesPerRequest: null })
  // The transport reports why a connection was lost.
  client.on('error', () => undefined)
  afterAll(() => client.disconnect())
  const nodeRedis = library === 'ioredis' ? undefined : await nodeRedisOf(service)
  exercise({
    ...scenarios,
    name: `redis streams, ${library}`,
    open: () => redisWorld(client, nodeRedis),
    restartBroker: async () => {
      await services('do', service, 'crash')
    },
  })
}

async function nodeRedisOf(service: string): Promise<NodeRedisClient> {
  const client = createClient({ url: await urlOf(service) })
  client.on('error', () => undefined)
  await client.connect()
  afterAll(() => client.destroy())
  return client
}

/** The contract on a cluster. Each stream is on one of its servers. */
export async function contractOnCluster(
  scenarios: Pick<ExerciseOptions, 'only' | 'skip'>,
): Promise<void> {
  const nodes = (await urlsOf('redis-cluster')).map((url) => Number(new URL(url).port))
  const client = new Cluster(nodes.map((port) => ({ host: '127.0.0.1', port })))
  client.on('error', () => undefined)
  afterAll(() => client.disconnect())
  exercise({ ...scenarios, name: 'redis cluster', open: () => redisWorld(client) })
}

function exercise(options: Omit<ExerciseOptions, 'runner' | 'capabilities'>): void {
  const runner = { describe, it }
  const common = {
    runner,
    capabilities: CAPABILITIES,
    isConcurrent: true,
    deadline: '60s',
  } as const
  exerciseTransport({ ...common, ...options })
}
