import type { Pool } from 'pg'
import type { FoundMessage } from '../evidence/evidence.ts'
import { POLICY } from '../harness/consumer-options.ts'
import type { FleetOptions } from '../harness/fleet.ts'
import type { LoadScenario } from '../harness/load-scenario.ts'
import type { Session } from '../harness/scenario.ts'
import { type World, worldOf } from '../harness/world.ts'
import type { Broker } from './broker.ts'
import type { RabbitConsumerOptions } from './consumer-options.ts'
import { produce } from './producer.ts'

export interface RabbitScenario extends LoadScenario<RabbitWorld> {
  /** The cluster is used only where one node is not enough or must stay intact. */
  readonly service: 'rabbitmq' | 'rabbitmq-restarts' | 'rabbitmq-cluster'
}

export interface RabbitWorld extends World<RabbitConsumerOptions> {
  readonly broker: Broker
  readonly pool: Pool
  readonly databaseUrl: string
  /** Messages that the scenario itself took out of the broker, as an operator would. */
  readonly taken: FoundMessage[]
}

export interface RabbitWorldDeps {
  readonly session: Session
  readonly scenario: RabbitScenario
  readonly broker: Broker
  readonly pool: Pool
  readonly databaseUrl: string
}

type Common = Omit<FleetOptions<RabbitConsumerOptions>, 'folder' | 'run' | 'queues'>

const PROGRAM = new URL('./consumer.ts', import.meta.url)

export function rabbitWorldOf(parts: RabbitWorldDeps): RabbitWorld {
  const { session, scenario, broker, pool, databaseUrl } = parts
  const { urls } = broker
  const common: Common = { databaseUrl, urls, policy: POLICY, workMs: 5 }
  const world = worldOf({
    session,
    scenario,
    program: PROGRAM,
    common,
    send: (load) => produce({ ...load, urls }),
  })
  return { ...world, broker, pool, databaseUrl, taken: [] }
}
