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
import { isPartOf, type Scenario } from './scenario.ts'
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
  return {
    name,
    mutants,
    scenarios: scenarios.map((one) => one.name),
    smoke: scenarios.filter((one) => isPartOf(one, 'smoke')).map((one) => one.name),
    play: (choice) => playChosen(subject, choice),
  }
}

function withDrills(
  name: string,
  drills: readonly Pick<Drill, 'name' | 'isInSmoke'>[],
  mutants: readonly Mutant[],
  play: Breakable['play'],
): Breakable {
  return {
    name,
    mutants,
    scenarios: drills.map((one) => one.name),
    smoke: drills.filter(({ isInSmoke }) => isInSmoke).map((one) => one.name),
    play,
  }
}

export const SUBJECTS: readonly Breakable[] = [
  onServer(RABBITMQ, RABBITMQ_MUTANTS),
  onServer(POSTGRES, POSTGRES_MUTANTS),
  onServer(KAFKA, KAFKA_MUTANTS),
  withDrills('emission', EMISSION_DRILLS, EMISSION_MUTANTS, playEmission),
  withDrills('catalog', CATALOG_DRILLS, CATALOG_MUTANTS, playCatalog),
  withDrills('server', SERVER_DRILLS, SERVER_MUTANTS, playServer),
]
