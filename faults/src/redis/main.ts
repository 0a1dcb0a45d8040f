import { brokerServer } from '../harness/broker-server.ts'
import { makeTables, openDatabase } from '../harness/effects.ts'
import { playLoad, subjectOn } from '../harness/load-scenario.ts'
import type { Subject } from '../harness/play.ts'
import type { Result, Session } from '../harness/scenario.ts'
import { urlsOf } from '../harness/services.ts'
import { startProxy } from '../harness/proxy.ts'
import { openBroker } from './broker.ts'
import { CONTENT } from './content.ts'
import { MUTANTS } from './mutants.ts'
import { SCENARIOS } from './scenarios/index.ts'
import { type RedisScenario, redisWorldOf } from './world.ts'

export const REDIS: Subject = subjectOn('redis', SCENARIOS, MUTANTS, play)

async function play(scenario: RedisScenario, session: Session): Promise<Result> {
  const [databaseUrl = ''] = await urlsOf('postgres')
  const urls = await urlsOf(scenario.service)
  const url = new URL(urls[0] ?? '')
  const proxy = await startProxy(Number(url.port))
  url.port = String(proxy.port)
  const broker = openBroker(url.href, proxy)
  await broker.client.connect()
  const pool = openDatabase(databaseUrl, { isInHurry: true })
  try {
    await makeTables(pool)
    const world = redisWorldOf({ session, scenario, broker, urls, pool, databaseUrl })
    return await playLoad({ scenario, world, server: brokerServer(CONTENT) })
  } finally {
    await pool.end()
    broker.client.disconnect()
    await proxy.close()
  }
}
