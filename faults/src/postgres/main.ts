import { openDatabase } from '../harness/effects.ts'
import { playLoad, subjectOn } from '../harness/load-scenario.ts'
import type { Subject } from '../harness/play.ts'
import { startProxy } from '../harness/proxy.ts'
import { isGood, type Result, type Session } from '../harness/scenario.ts'
import { services, urlsOf } from '../harness/services.ts'
import { createDatabase, dropDatabase, openRunDatabase, throughPort } from './database.ts'
import { MUTANTS } from './mutants.ts'
import { SCENARIOS } from './scenarios/index.ts'
import { postgresServer } from './server.ts'
import { type PostgresScenario, postgresWorldOf } from './world.ts'

/** 10 concurrent transactions: enough for any rate here, where each waits for the disk. */
const PRODUCERS = 10

export const POSTGRES: Subject = subjectOn('postgres', SCENARIOS, MUTANTS, play)

async function play(scenario: PostgresScenario, session: Session): Promise<Result> {
  const { name, service, producers = PRODUCERS } = scenario
  const [serverUrl = ''] = await urlsOf(service)
  const url = await createDatabase(serverUrl, name)
  const wire = await startProxy(Number(new URL(url).port))
  // Only where the server itself is replaced. In other scenarios the proxy would only add delay.
  const everybodysUrl = service === 'postgres-pair' ? throughPort(url, wire.port) : url
  const database = await openRunDatabase(everybodysUrl)
  const pool = openDatabase(everybodysUrl, { connections: producers })
  const world = postgresWorldOf({ session, scenario, database, wire, pool })
  let isOver = false
  try {
    const result = await playLoad({ scenario, world, server: postgresServer })
    isOver = isGood(result)
    return result
  } finally {
    await pool.end()
    await database.end()
    await wire.close()
    // Repairs everything that the scenario broke. After a failure the database stays for
    // inspection.
    await services('up', service)
    if (isOver) await dropDatabase(url)
    else session.say(`the database: ${url}`)
  }
}
