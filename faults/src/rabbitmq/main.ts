import { makeTables, openDatabase } from '../effects.ts'
import type { Subject } from '../play.ts'
import { playScenario } from '../run.ts'
import { serviceOf } from '../scenario.ts'
import { urlsOf } from '../services.ts'
import { brokerAt } from './broker.ts'
import { hastenDeadLetters } from './cluster.ts'
import { SCENARIOS } from './scenarios/index.ts'
import { rabbitServer } from './server.ts'
import { type RabbitScenario, rabbitWorldOf } from './world.ts'

export const RABBITMQ: Subject<RabbitScenario> = {
  name: 'rabbitmq',
  scenarios: SCENARIOS,
  async prepare(session) {
    const [databaseUrl = ''] = await urlsOf('postgres')
    const pool = openDatabase(databaseUrl, { isInHurry: true })
    await makeTables(pool)
    return {
      async play(scenario) {
        const service = serviceOf(scenario, session.scale)
        // After a scenario that broke nodes this waits until all of them are back.
        const broker = brokerAt(await urlsOf(service))
        if (service === 'rabbitmq-cluster') await hastenDeadLetters()
        const world = rabbitWorldOf({ session, scenario, broker, pool, databaseUrl })
        return playScenario({ scenario, world, server: rabbitServer, session })
      },
      end: () => pool.end(),
    }
  },
}
