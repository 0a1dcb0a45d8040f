import { fileURLToPath } from 'node:url'
import type { Pool } from 'pg'
import { POLICY } from '../consumer-options.ts'
import type { FleetOptions } from '../fleet.ts'
import type { Proxy } from '../proxy.ts'
import type { Scenario } from '../scenario.ts'
import { type Session, type World, worldOf } from '../world.ts'
import type { PostgresConsumerOptions } from './consumer-options.ts'
import { beat, type Database } from './database.ts'
import { type PlannedEvent, produce } from './producer.ts'

export interface PostgresScenario extends Scenario<PostgresWorld> {
  /** The pair only where one server is not enough. */
  readonly service: 'postgres' | 'postgres-pair'
  /** Transactions of producers at once. Default 10. */
  readonly producers?: number
}

export interface PostgresWorld extends World<PostgresConsumerOptions, PlannedEvent> {
  readonly database: Database
  /** On the pair, what everybody connects through: aimed at the other server after a fail-over. */
  readonly wire: Proxy
}

export interface PostgresWorldParts {
  readonly session: Session
  readonly scenario: PostgresScenario
  readonly database: Database
  readonly wire: Proxy
  /** For producers alone. */
  readonly pool: Pool
}

const PROGRAM = fileURLToPath(new URL('./consumer.ts', import.meta.url))

/** 2 s: a consumer that died is not what these runs should wait for. */
export const LEASE_MS = 2_000
/** 30 s, where nobody dies: a process that stands still for seconds must not lose what it has in hand. */
export const LONG_LEASE_MS = 30_000

type Common = Omit<FleetOptions<PostgresConsumerOptions>, 'folder' | 'run' | 'queues'>

export function postgresWorldOf(parts: PostgresWorldParts): PostgresWorld {
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
