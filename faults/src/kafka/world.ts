import type { Pool } from 'pg'
import { POLICY } from '../harness/consumer-options.ts'
import { countEffects } from '../harness/effects.ts'
import type { FleetOptions } from '../harness/fleet.ts'
import type { LoadScenario } from '../harness/load-scenario.ts'
import type { Session } from '../harness/scenario.ts'
import { type World, worldOf } from '../harness/world.ts'
import type { Broker, Offsets } from './broker.ts'
import type { KafkaConsumerOptions } from './consumer-options.ts'
import { type PlannedRecord, produce } from './producer.ts'
import { PARTITIONS } from './topology.ts'

/** Three brokers, or a single one for `--smoke`. */
export type KafkaService = 'kafka-cluster' | 'kafka-restarts'

export interface KafkaScenario extends LoadScenario<KafkaWorld> {
  readonly service: KafkaService
  readonly smokeService: KafkaService
  /** Number of partitions of the run's topics. Default 6. */
  readonly partitions?: number
}

export interface KafkaWorld extends World<KafkaConsumerOptions, PlannedRecord> {
  readonly service: KafkaService
  readonly broker: Broker
  readonly pool: Pool
  readonly partitions: number
  /** Sends later messages to this number of partitions. */
  usePartitions(count: number): void
  /** Returns whether messages are being sent to the cluster. Faults continue during this time. */
  isSending(): boolean
  /** End offsets of the commit log before the run. */
  readonly commitsFrom: Offsets
}

export interface KafkaWorldDeps {
  readonly session: Session
  readonly scenario: KafkaScenario
  readonly service: KafkaService
  readonly broker: Broker
  readonly pool: Pool
  readonly databaseUrl: string
  readonly commitsFrom: Offsets
}

const PROGRAM = new URL('./consumer.ts', import.meta.url)

/** 3 s: these runs must not wait long for a dead consumer. */
export const SESSION_MS = 3_000

type Common = Omit<FleetOptions<KafkaConsumerOptions>, 'folder' | 'run' | 'queues'>

export function kafkaWorldOf(parts: KafkaWorldDeps): KafkaWorld {
  const { session, scenario, service, broker, pool, databaseUrl, commitsFrom } = parts
  const { partitions = PARTITIONS } = scenario
  const brokers = broker.addresses
  const common: Common = {
    databaseUrl,
    brokers,
    // A broker that is down for seconds must not reduce the concurrency.
    policy: { ...POLICY, adaptiveConcurrency: 'off' },
    workMs: 5,
    sessionMs: SESSION_MS,
    drainMs: 1_000,
    confirmMs: 5_000,
  }
  let sending = 0
  let used = partitions
  const world = worldOf({
    session,
    scenario,
    program: PROGRAM,
    common,
    async send(load) {
      const room = roomIn(world, pool)
      sending += 1
      try {
        await produce({ ...load, brokers, partitions: used, hasRoom: room.isThere })
      } finally {
        sending -= 1
        room.close()
      }
    },
  })
  const isSending = () => sending > 0
  const usePartitions = (count: number) => void (used = count)
  const own = { service, broker, pool, partitions, commitsFrom, isSending, usePartitions }
  return { ...world, ...own }
}

/** 3,000: two slow cores handle this many in half of the allowed recovery time. */
const MOST_WAITING = 3_000
const LOOK_MS = 500
/**
 * 20 s without another effect: the missing messages are lost and not waiting, so the producer
 * continues.
 */
const STALLED_MS = 20_000

/**
 * Limits the backlog. The run measures the recovery from a fault, not the time a slow machine needs
 * for its load.
 */
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
      // The pool is closed when the run has ended.
      () => undefined,
    )
  }, LOOK_MS)
  return { isThere: () => isThere, close: () => clearInterval(timer) }
}
