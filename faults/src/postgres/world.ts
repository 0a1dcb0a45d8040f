import type { Pool } from 'pg'
import { POLICY } from '../harness/consumer-options.ts'
import type { FleetOptions } from '../harness/fleet.ts'
import type { Proxy } from '../harness/proxy.ts'
import type { LoadScenario } from '../harness/load-scenario.ts'
import type { Session } from '../harness/scenario.ts'
import { type World, worldOf } from '../harness/world.ts'
import type { PostgresConsumerOptions } from './consumer-options.ts'
import { beat, type Database } from './database.ts'
import { type PlannedEvent, produce } from './producer.ts'

export interface PostgresScenario extends LoadScenario<PostgresWorld> {
  /** The pair is used only where one server is not enough. */
  readonly service: 'postgres' | 'postgres-restarts' | 'postgres-pair'
  /** Number of concurrent producer transactions. Default 10. */
  readonly producers?: number
}

export interface PostgresWorld extends World<PostgresConsumerOptions, PlannedEvent> {
  readonly database: Database
  /** The proxy for all connections on the pair. It leads to the other server after a failover. */
  readonly wire: Proxy
}

export interface PostgresWorldDeps {
  readonly session: Session
  readonly scenario: PostgresScenario
  readonly database: Database
  readonly wire: Proxy
  /** Pool for producers alone. */
  readonly pool: Pool
}

const PROGRAM = new URL('./consumer.ts', import.meta.url)

/** 2 s: these runs must not wait long for a dead consumer. */
export const LEASE_MS = 2_000
/**
 * 30 s, where no consumer dies: a process that is stalled for seconds must keep its in-flight
 * messages.
 */
export const LONG_LEASE_MS = 30_000

type Common = Omit<FleetOptions<PostgresConsumerOptions>, 'folder' | 'run' | 'queues'>

export function postgresWorldOf(parts: PostgresWorldDeps): PostgresWorld {
  const { session, scenario, database, wire, pool } = parts
  const common: Common = {
    databaseUrl: database.url,
    policy: { ...POLICY, concurrency: 10 },
    workMs: 5,
    lease: LEASE_MS,
  }
  const world = worldOf({
    session,
    scenario,
    program: PROGRAM,
    common,
    send: (sending) => produce({ ...sending, pool, run: world.run }),
    beat: () => beat(database.pool),
  })
  return { ...world, database, wire }
}
