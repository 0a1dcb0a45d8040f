import { CATALOG_DRILLS, playCatalog } from './catalog/main.ts'
import { MUTANTS as CATALOG_MUTANTS } from './catalog/mutants.ts'
import type { Drill } from './drill.ts'
import { EMISSION_DRILLS, playEmission } from './emission/main.ts'
import { MUTANTS as EMISSION_MUTANTS } from './emission/mutants.ts'
import type { Mutant, Prey } from './hunt.ts'
import { KAFKA } from './kafka/main.ts'
import { MUTANTS as KAFKA_MUTANTS } from './kafka/mutants.ts'
import { type Choice, playChosen, type Subject } from './play.ts'
import { POSTGRES } from './postgres/main.ts'
import { MUTANTS as POSTGRES_MUTANTS } from './postgres/mutants.ts'
import { RABBITMQ } from './rabbitmq/main.ts'
import { MUTANTS as RABBITMQ_MUTANTS } from './rabbitmq/mutants.ts'
import { isPartOf, type Scenario, serviceOf } from './scenario.ts'
import { playServer, SERVER_DRILLS } from './server/main.ts'
import { MUTANTS as SERVER_MUTANTS } from './server/mutants.ts'

/** A thing that can be broken, by the name it has on the command line. */
export interface Breakable extends Prey {
  /** Names of all its scenarios or drills. */
  readonly scenarios: readonly string[]
  play(choice: Choice): Promise<boolean>
}

function onServer<S extends Scenario<never>>(
  subject: Subject<S>,
  mutants: readonly Mutant[],
): Breakable {
  const { name, scenarios } = subject
  const hunted = scenarios.filter((one) =>
    mutants.some(({ scenario }) => one.name.startsWith(scenario)),
  )
  const formOf = (one: S) => (isPartOf(one, 'smoke') ? 'smoke' : 'quick')
  return {
    name,
    mutants,
    // Effects are in PostgreSQL, whatever the messages come from.
    services: ['postgres', ...hunted.map((one) => serviceOf(one, formOf(one)))],
    scenarios: scenarios.map((one) => one.name),
    smoke: scenarios.filter((one) => isPartOf(one, 'smoke')).map((one) => one.name),
    play: (choice) => playChosen(subject, choice),
  }
}

function withDrills(
  name: string,
  drills: readonly Pick<Drill, 'name' | 'isInSmoke'>[],
  mutants: readonly Mutant[],
  services: readonly string[],
  play: Breakable['play'],
): Breakable {
  return {
    name,
    mutants,
    services,
    scenarios: drills.map((one) => one.name),
    smoke: drills.filter(({ isInSmoke }) => isInSmoke).map((one) => one.name),
    play,
  }
}

const BROKERS: readonly string[] = ['postgres', 'rabbitmq', 'kafka']

export const SUBJECTS: readonly Breakable[] = [
  onServer(RABBITMQ, RABBITMQ_MUTANTS),
  onServer(POSTGRES, POSTGRES_MUTANTS),
  onServer(KAFKA, KAFKA_MUTANTS),
  withDrills('emission', EMISSION_DRILLS, EMISSION_MUTANTS, [], playEmission),
  withDrills('catalog', CATALOG_DRILLS, CATALOG_MUTANTS, BROKERS, playCatalog),
  withDrills('server', SERVER_DRILLS, SERVER_MUTANTS, BROKERS, playServer),
]
