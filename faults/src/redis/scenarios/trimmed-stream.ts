import { readHistory } from '../../evidence/history.ts'
import { POLICY } from '../../harness/consumer-options.ts'
import { ready } from '../../harness/fleet.ts'
import { until } from '../../harness/wait.ts'
import type { RedisScenario } from '../world.ts'

const CONSUMERS = 2
const RATE = 1_000
/** Long enough that all handlers run when the stream is trimmed. */
const WORK_MS = 20_000

export const trimmedStream: RedisScenario = {
  name: 'trimmed-stream',
  story:
    'a producer trims every entry while its handler runs, and the consumers stop; copies have the bytes',
  service: 'redis-restarts',
  messages: { quick: 100, full: 400 },
  async play(world) {
    const { broker, run, folder } = world
    // An entry that no consumer has read would be lost.
    const limits = { concurrency: world.messages, adaptiveConcurrency: 'off' } as const
    const policy = { ...POLICY, ...limits, timeout: '2m' } as const
    const fleet = world.fleet({ policy, workMs: WORK_MS })
    for (let count = 0; count < CONSUMERS; count++) fleet.start()
    await ready(fleet, CONSUMERS)
    await world.produce({ ratePerSecond: RATE, mix: { flaky: 12, business: 4 } })
    const startedIds = () =>
      readHistory(folder).flatMap((one) => (one.what === 'handler_started' ? [one.id] : []))
    const haveAllStarted = () => new Set(startedIds()).size === world.messages
    await until('all handlers run', haveAllStarted, { withinMs: 60_000 })
    const end = world.fault('the stream is trimmed')
    await broker.client.xtrim(run, 'MAXLEN', 0)
    // They return the messages whose handlers still run: another consumer gets copies.
    await fleet.stop()
    world.fleet({ policy }).start()
    end()
    world.heal()
  },
}
