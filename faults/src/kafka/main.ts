import { makeTables, openDatabase } from '../effects.ts'
import type { Subject } from '../play.ts'
import { playScenario } from '../run.ts'
import { serviceOf } from '../scenario.ts'
import { services, urlsOf } from '../services.ts'
import { becomesTrue } from '../wait.ts'
import { type Broker, brokerAt, endsOf, type Offsets, topicsOf } from './broker.ts'
import { COMMITS } from './commits.ts'
import { SCENARIOS } from './scenarios/index.ts'
import { kafkaServer } from './server.ts'
import { type KafkaScenario, kafkaWorldOf } from './world.ts'

export const KAFKA: Subject<KafkaScenario> = {
  name: 'kafka',
  scenarios: SCENARIOS,
  async prepare(session) {
    const [databaseUrl = ''] = await urlsOf('postgres')
    const pool = openDatabase(databaseUrl, { isInHurry: true })
    await makeTables(pool)
    return {
      async play(scenario) {
        const service = serviceOf(scenario, session.scale)
        // After a scenario that broke nodes this waits until all of them are back.
        const addresses = (await urlsOf(service)).flatMap((line) => line.split(','))
        const broker = brokerAt(addresses)
        const commitsFrom = await endOfCommits(broker)
        const parts = { session, scenario, service, broker, pool, databaseUrl, commitsFrom }
        const world = kafkaWorldOf(parts)
        try {
          return await playScenario({ scenario, world, server: kafkaServer, session })
        } finally {
          await broker.close()
          await services('up', service)
        }
      },
      end: () => pool.end(),
    }
  },
}

/** 30 s: a broker that has just started accepts requests before it leads its partitions. */
const LEADS_MS = 30_000

/** Returns where the log of all commits ends, as soon as the broker leads it. */
async function endOfCommits(broker: Broker): Promise<Offsets> {
  let ends: Offsets | undefined
  let problem: unknown
  const isKnown = async () => {
    try {
      ends = await endsOf(broker, await topicsOf(broker, COMMITS))
    } catch (error) {
      problem = error
    }
    return ends !== undefined
  }
  await becomesTrue(isKnown, { withinMs: LEADS_MS, everyMs: 500 })
  if (ends === undefined) throw problem
  return ends
}
