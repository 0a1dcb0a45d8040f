import { makeTables, openDatabase } from '../effects.ts'
import { isGood, type Result, tableOf } from '../report.ts'
import type { Scale } from '../scenario.ts'
import { ROOT, urlsOf } from '../services.ts'
import { brokerAt } from './broker.ts'
import { hastenDeadLetters } from './cluster.ts'
import { playScenario } from './run.ts'
import { SCENARIOS } from './scenarios/index.ts'
import type { RabbitScenario } from './world.ts'

export interface RabbitOptions {
  readonly scale: Scale
  /** Only the scenarios whose names begin like this. */
  readonly only: string | undefined
  readonly messages: number | undefined
  readonly print: (text: string) => void
}

/** Plays the scenarios; true when no promise was broken. */
export async function faultsOfRabbitMq(options: RabbitOptions): Promise<boolean> {
  const { only = '', print } = options
  const chosen = SCENARIOS.filter(({ name, isOnlyFull = false }) =>
    options.only === undefined ? options.scale === 'full' || !isOnlyFull : name.startsWith(only),
  )
  if (chosen.length === 0) {
    print(
      `There is no scenario '${only}'. There is:\n${SCENARIOS.map(({ name }) => name).join('\n')}`,
    )
    return false
  }
  const results = await playAll(chosen, options)
  print(`\n${tableOf(results)}`)
  const failed = results.filter((result) => !isGood(result)).length
  const attempted = results.reduce((sum, { figures }) => sum + figures.attempted, 0)
  const figure = `${failed} of ${results.length} scenarios failed, ${attempted} messages, goal 0`
  print(`${failed === 0 ? 'PASS' : 'SHORT'} faults rabbitmq ${figure}`)
  return failed === 0
}

/**
 * On one server one after the other. Quickly, the two servers are used side by side; the published
 * figures are those of a machine that does one thing at a time.
 */
async function playAll(
  scenarios: readonly RabbitScenario[],
  options: RabbitOptions,
): Promise<readonly Result[]> {
  const [databaseUrl = ''] = await urlsOf('postgres')
  const pool = openDatabase(databaseUrl)
  await makeTables(pool)
  const lanes =
    options.scale === 'quick'
      ? [...Map.groupBy(scenarios, ({ service }) => service).values()]
      : [scenarios]
  const played = await Promise.all(
    lanes.map((lane) => playLane(lane, { ...options, databaseUrl, pool })),
  )
  await pool.end()
  const order = scenarios.map(({ name }) => name)
  return played.flat().sort((a, b) => order.indexOf(a.scenario) - order.indexOf(b.scenario))
}

interface LaneOptions extends RabbitOptions {
  readonly databaseUrl: string
  readonly pool: ReturnType<typeof openDatabase>
}

async function playLane(
  scenarios: readonly RabbitScenario[],
  options: LaneOptions,
): Promise<readonly Result[]> {
  const results: Result[] = []
  for (const scenario of scenarios) {
    const { service } = scenario
    // After a scenario that broke nodes this waits until all of them are back.
    const broker = brokerAt(await urlsOf(service))
    if (service === 'rabbitmq-cluster') await hastenDeadLetters()
    results.push(
      await playScenario({ ...options, scenario, broker, reports: `${ROOT}.reports/faults` }),
    )
  }
  return results
}
