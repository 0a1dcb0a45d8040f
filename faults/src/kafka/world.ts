import { fileURLToPath } from 'node:url'
import type { Pool } from 'pg'
import { POLICY } from '../consumer-options.ts'
import { countEffects } from '../effects.ts'
import type { FleetOptions } from '../fleet.ts'
import type { Scenario } from '../scenario.ts'
import { type Session, type World, worldOf } from '../world.ts'
import type { Broker, Offsets } from './broker.ts'
import type { KafkaConsumerOptions } from './consumer-options.ts'
import { type PlannedRecord, produce } from './producer.ts'
import { PARTITIONS } from './topology.ts'

/** Three brokers, or the one that `--smoke` uses. */
export type KafkaService = 'kafka-cluster' | 'kafka'

export interface KafkaScenario extends Scenario<KafkaWorld> {
  readonly service: KafkaService
  readonly smokeService: KafkaService
  /** Of the topics of the run. Default 6. */
  readonly partitions?: number
}

export interface KafkaWorld extends World<KafkaConsumerOptions, PlannedRecord> {
  readonly service: KafkaService
  readonly broker: Broker
  readonly pool: Pool
  readonly partitions: number
  /** Messages are on their way to the cluster: faults go on for as long. */
  isSending(): boolean
  /** Where the log of all commits ended before the run. */
  readonly commitsFrom: Offsets
}

export interface KafkaWorldParts {
  readonly session: Session
  readonly scenario: KafkaScenario
  readonly service: KafkaService
  readonly broker: Broker
  readonly pool: Pool
  readonly databaseUrl: string
  readonly commitsFrom: Offsets
}

const PROGRAM = fileURLToPath(new URL('./consumer.ts', import.meta.url))

/** 3 s: a consumer that died is not what these runs should wait for. */
export const SESSION_MS = 3_000

type Common = Omit<FleetOptions<KafkaConsumerOptions>, 'folder' | 'run' | 'queues'>

export function kafkaWorldOf(parts: KafkaWorldParts): KafkaWorld {
  const { session, scenario, service, broker, pool, databaseUrl, commitsFrom } = parts
  const { partitions = PARTITIONS } = scenario
  const brokers = broker.addresses
  const common: Common = {
    databaseUrl,
    brokers,
    // A broker that is down for seconds is no reason to hand out less.
    policy: { ...POLICY, limit: 'off' },
    workMs: 5,
    sessionMs: SESSION_MS,
    drainMs: 1_000,
    confirmMs: 5_000,
  }
  let sending = 0
  const world = worldOf({
    session,
    scenario,
    program: PROGRAM,
    common,
    async send(load) {
      const room = roomIn(world, pool)
      sending += 1
      try {
        await produce({ ...load, brokers, partitions, hasRoom: room.isThere })
      } finally {
        sending -= 1
        room.close()
      }
    },
  })
  const isSending = () => sending > 0
  return { ...world, service, broker, pool, partitions, commitsFrom, isSending }
}

/** 3,000: what two slow cores handle within half of what a recovery may take. */
const MOST_WAITING = 3_000
const LOOK_MS = 500
/** 20 s without one more effect: what is missing is lost and not waiting, so the producer continues. */
const STALLED_MS = 20_000

/** What is timed is the recovery from a fault, and not how long a slow machine takes for its load. */
function roomIn({ expected, run }: World, pool: Pool) {
  let isThere = true
  let seen = -1
  let changedAt = performance.now()
  const timer = setInterval(() => {
    countEffects(pool, run).then(
      (effects) => {
        if (effects !== seen) changedAt = performance.now()
        seen = effects
        const isStalled = performance.now() - changedAt > STALLED_MS
        isThere = isStalled || expected.effect - effects < MOST_WAITING
      },
      // It is closed when the run is over.
      () => undefined,
    )
  }, LOOK_MS)
  return { isThere: () => isThere, close: () => clearInterval(timer) }
}
