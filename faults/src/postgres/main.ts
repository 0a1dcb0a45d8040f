import { openDatabase } from '../effects.ts'
import type { Subject } from '../play.ts'
import { startProxy } from '../proxy.ts'
import { isGood, type Result } from '../report.ts'
import { playScenario } from '../run.ts'
import { services, urlsOf } from '../services.ts'
import type { Session } from '../world.ts'
import { createDatabase, dropDatabase, openRunDatabase, throughPort } from './database.ts'
import { SCENARIOS } from './scenarios/index.ts'
import { postgresServer } from './server.ts'
import { type PostgresScenario, postgresWorldOf } from './world.ts'

/** 10 transactions at once: enough for any rate here, where each waits for the disk. */
const PRODUCERS = 10

export const POSTGRES: Subject<PostgresScenario> = {
  name: 'postgres',
  scenarios: SCENARIOS,
  prepare: async (session) => ({
    play: (scenario) => playOnServer(scenario, session),
    end: async () => undefined,
  }),
}

async function playOnServer(scenario: PostgresScenario, session: Session): Promise<Result> {
  const { name, service, producers = PRODUCERS } = scenario
  const [serverUrl = ''] = await urlsOf(service)
  const url = await createDatabase(serverUrl, name)
  const wire = await startProxy(Number(new URL(url).port))
  // Only where the server itself is exchanged: elsewhere the wire would be one more thing to wait for.
  const everybodysUrl = service === 'postgres-pair' ? throughPort(url, wire.port) : url
  const database = await openRunDatabase(everybodysUrl)
  const pool = openDatabase(everybodysUrl, { connections: producers })
  const world = postgresWorldOf({ session, scenario, database, wire, pool })
  let isOver = false
  try {
    const result = await playScenario({ scenario, world, server: postgresServer, session })
    isOver = isGood(result)
    return result
  } finally {
    await pool.end()
    await database.end()
    await wire.close()
    // Whatever the scenario broke is whole again; what failed stays for people to look at.
    await services('up', service)
    if (isOver) await dropDatabase(url)
    else session.print(`  the database: ${url}`)
  }
}
