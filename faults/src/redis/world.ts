import type { Pool } from 'pg'
import { POLICY } from '../harness/consumer-options.ts'
import type { FleetOptions } from '../harness/fleet.ts'
import type { LoadScenario } from '../harness/load-scenario.ts'
import type { Session } from '../harness/scenario.ts'
import { type World, worldOf } from '../harness/world.ts'
import { type Broker, produce } from './broker.ts'
import type { RedisConsumerOptions } from './consumer-options.ts'

export interface RedisScenario extends LoadScenario<RedisWorld> {
  /** The pair is used only where one server is not enough. */
  readonly service: 'redis-restarts' | 'redis-pair'
}

export interface RedisWorld extends World<RedisConsumerOptions> {
  readonly broker: Broker
  readonly pool: Pool
  /** Addresses of all servers, the first primary first. */
  readonly urls: readonly string[]
}

export interface RedisWorldDeps {
  readonly session: Session
  readonly scenario: RedisScenario
  readonly broker: Broker
  readonly urls: readonly string[]
  readonly pool: Pool
  readonly databaseUrl: string
}

type Common = Omit<FleetOptions<RedisConsumerOptions>, 'folder' | 'run' | 'queues'>

const PROGRAM = new URL('./consumer.ts', import.meta.url)

/** 5 s: short enough to wait for a dead consumer, and longer than a busy machine stops a process. */
const LEASE = '5s'

export function redisWorldOf(parts: RedisWorldDeps): RedisWorld {
  const { session, scenario, broker, urls, pool, databaseUrl } = parts
  const common: Common = {
    databaseUrl,
    url: broker.url,
    lease: LEASE,
    isResending: true,
    policy: POLICY,
    workMs: 5,
  }
  const world = worldOf({
    session,
    scenario,
    program: PROGRAM,
    common,
    send: (sending) => produce(broker, sending),
    beat: () => broker.client.ping(),
  })
  return { ...world, broker, urls, pool }
}
