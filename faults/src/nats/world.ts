import type { Pool } from 'pg'
import { POLICY } from '../harness/consumer-options.ts'
import type { FleetOptions } from '../harness/fleet.ts'
import type { LoadScenario } from '../harness/load-scenario.ts'
import type { Session } from '../harness/scenario.ts'
import { type World, worldOf } from '../harness/world.ts'
import { type Broker, produce } from './broker.ts'
import type { NatsConsumerOptions } from './consumer-options.ts'

export interface NatsScenario extends LoadScenario<NatsWorld> {
  /** The cluster is used only where one server is not enough. */
  readonly service: 'nats-restarts' | 'nats-cluster'
}

export interface NatsWorld extends World<NatsConsumerOptions> {
  readonly broker: Broker
  readonly pool: Pool
}

export interface NatsWorldDeps {
  readonly session: Session
  readonly scenario: NatsScenario
  readonly broker: Broker
  readonly pool: Pool
  readonly databaseUrl: string
}

type Common = Omit<FleetOptions<NatsConsumerOptions>, 'folder' | 'run' | 'queues'>

const PROGRAM = new URL('./consumer.ts', import.meta.url)

/** 5 s: short enough to wait for a dead consumer, and longer than a busy machine stops a process. */
const LEASE = '5s'

export function natsWorldOf(parts: NatsWorldDeps): NatsWorld {
  const { session, scenario, broker, pool, databaseUrl } = parts
  const { servers, replicas } = broker
  const common: Common = {
    databaseUrl,
    servers,
    replicas,
    lease: LEASE,
    policy: POLICY,
    workMs: 5,
  }
  const world = worldOf({
    session,
    scenario,
    program: PROGRAM,
    common,
    send: (sending) => produce(broker, sending),
    beat: () => broker.connection.flush(),
  })
  return { ...world, broker, pool }
}
