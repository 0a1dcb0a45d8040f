import { ListQueuesCommand } from '@aws-sdk/client-sqs'
import type { Pool } from 'pg'
import { POLICY } from '../harness/consumer-options.ts'
import type { FleetOptions } from '../harness/fleet.ts'
import type { LoadScenario } from '../harness/load-scenario.ts'
import type { Session } from '../harness/scenario.ts'
import { type World, worldOf } from '../harness/world.ts'
import { type Broker, produce } from './broker.ts'
import type { SqsConsumerOptions } from './consumer-options.ts'

export interface SqsScenario extends LoadScenario<SqsWorld> {
  /** The server with storage is used only where it restarts. */
  readonly service: 'elasticmq' | 'elasticmq-restarts'
}

export interface SqsWorld extends World<SqsConsumerOptions> {
  readonly broker: Broker
  readonly pool: Pool
}

export interface SqsWorldDeps {
  readonly session: Session
  readonly scenario: SqsScenario
  readonly broker: Broker
  readonly pool: Pool
  readonly databaseUrl: string
}

type Common = Omit<FleetOptions<SqsConsumerOptions>, 'folder' | 'run' | 'queues'>

const PROGRAM = new URL('./consumer.ts', import.meta.url)

/** 5 s: short enough to wait for a dead consumer, and longer than a busy machine stops a process. */
const LEASE = '5s'

export function sqsWorldOf(parts: SqsWorldDeps): SqsWorld {
  const { session, scenario, broker, pool, databaseUrl } = parts
  const { endpoint } = broker
  const common: Common = { databaseUrl, endpoint, lease: LEASE, policy: POLICY, workMs: 5 }
  const world = worldOf({
    session,
    scenario,
    program: PROGRAM,
    common,
    send: (sending) => produce(broker, sending),
    beat: () => broker.client.send(new ListQueuesCommand({ MaxResults: 1 })),
  })
  return { ...world, broker, pool }
}
