import { brokerServer } from '../harness/broker-server.ts'
import { makeTables, openDatabase } from '../harness/effects.ts'
import { playLoad, subjectOn } from '../harness/load-scenario.ts'
import type { Subject } from '../harness/play.ts'
import type { Result, Session } from '../harness/scenario.ts'
import { urlsOf } from '../harness/services.ts'
import { openBroker } from './broker.ts'
import { CONTENT } from './content.ts'
import { MUTANTS } from './mutants.ts'
import { SCENARIOS } from './scenarios/index.ts'
import { type SqsScenario, sqsWorldOf } from './world.ts'

export const SQS: Subject = subjectOn('sqs', SCENARIOS, MUTANTS, play)

async function play(scenario: SqsScenario, session: Session): Promise<Result> {
  const [databaseUrl = ''] = await urlsOf('postgres')
  const [endpoint = ''] = await urlsOf(scenario.service)
  const broker = openBroker(endpoint)
  const pool = openDatabase(databaseUrl, { isInHurry: true })
  try {
    await makeTables(pool)
    const world = sqsWorldOf({ session, scenario, broker, pool, databaseUrl })
    return await playLoad({ scenario, world, server: brokerServer(CONTENT) })
  } finally {
    await pool.end()
    broker.client.destroy()
  }
}
