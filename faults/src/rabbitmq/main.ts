import { makeTables, openDatabase } from '../harness/effects.ts'
import { playLoad, serviceOf, subjectOn } from '../harness/load-scenario.ts'
import type { Subject } from '../harness/play.ts'
import type { Result, Session } from '../harness/scenario.ts'
import { urlsOf } from '../harness/services.ts'
import { brokerAt } from './broker.ts'
import { MUTANTS } from './mutants.ts'
import { SCENARIOS } from './scenarios/index.ts'
import { rabbitServer } from './server.ts'
import { type RabbitScenario, rabbitWorldOf } from './world.ts'

export const RABBITMQ: Subject = subjectOn('rabbitmq', SCENARIOS, MUTANTS, play)

async function play(scenario: RabbitScenario, session: Session): Promise<Result> {
  const [databaseUrl = ''] = await urlsOf('postgres')
  const service = serviceOf(scenario, session.scale)
  // After a scenario that broke nodes, this waits until all of them are back.
  const broker = brokerAt(await urlsOf(service))
  const pool = openDatabase(databaseUrl, { isInHurry: true })
  try {
    await makeTables(pool)
    const world = rabbitWorldOf({ session, scenario, broker, pool, databaseUrl })
    return await playLoad({ scenario, world, server: rabbitServer })
  } finally {
    await pool.end()
  }
}
