import { makeTables, openDatabase } from '../harness/effects.ts'
import { playLoad, serviceOf, subjectOn } from '../harness/load-scenario.ts'
import type { Subject } from '../harness/play.ts'
import type { Result, Session } from '../harness/scenario.ts'
import { services, urlsOf } from '../harness/services.ts'
import { repeated } from '../harness/wait.ts'
import { type Broker, brokerAt, endsOf, type Offsets, topicsOf } from './broker.ts'
import { COMMITS } from './commits.ts'
import { MUTANTS } from './mutants.ts'
import { SCENARIOS } from './scenarios/index.ts'
import { kafkaServer } from './server.ts'
import { type KafkaScenario, kafkaWorldOf } from './world.ts'

export const KAFKA: Subject = subjectOn('kafka', SCENARIOS, MUTANTS, play)

async function play(scenario: KafkaScenario, session: Session): Promise<Result> {
  const [databaseUrl = ''] = await urlsOf('postgres')
  const service = serviceOf(scenario, session.scale)
  // After a scenario that broke nodes, this waits until all of them are back.
  const broker = brokerAt((await urlsOf(service)).flatMap((line) => line.split(',')))
  const pool = openDatabase(databaseUrl, { isInHurry: true })
  try {
    await makeTables(pool)
    const commitsFrom = await endOfCommits(broker)
    const parts = { session, scenario, service, broker, pool, databaseUrl, commitsFrom }
    return await playLoad({ scenario, world: kafkaWorldOf(parts), server: kafkaServer })
  } finally {
    await Promise.all([broker.close(), pool.end()])
    await services('up', service)
  }
}

/** 30 s: a broker that has just started accepts requests before it leads its partitions. */
const LEADS = { withinMs: 30_000, everyMs: 500 }

/** Returns where the log of all commits ends, as soon as the broker leads it. */
const endOfCommits = (broker: Broker): Promise<Offsets> =>
  repeated(async () => endsOf(broker, await topicsOf(broker, COMMITS)), LEADS)
