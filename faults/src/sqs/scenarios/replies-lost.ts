import type { Evidence, Violation } from '../../evidence/evidence.ts'
import { underLoad } from '../../harness/load.ts'
import { type Mode, startProxy } from '../../harness/proxy.ts'
import { lasting } from '../../harness/wait.ts'
import type { SqsScenario } from '../world.ts'

const RATE = 200
/** Longer than the wait for a response: outcomes are unknown. */
const SILENT_MS = 6_000

/** First SQS gets copies and deletions and its responses are lost, then it gets nothing. */
const MODES: readonly Mode[] = ['deaf-client', 'black-hole']

export const repliesLost: SqsScenario = {
  name: 'replies-lost',
  story:
    'SQS stores copies and its responses never arrive, or the copies never arrive; then the connections break',
  service: 'elasticmq',
  messages: { smoke: 1_000, quick: 2_000, full: 8_000 },
  async play(world) {
    const url = new URL(world.broker.endpoint)
    const proxy = await startProxy(Number(url.port))
    world.atEnd(() => proxy.close())
    url.port = String(proxy.port)
    // Longer than a wait for a response: an outcome is unknown before the lease ends.
    const fleet = { endpoint: url.origin, lease: '15s' } as const
    await underLoad(world, { consumers: 2, ratePerSecond: RATE, fleet }, async () => {
      for (let time = 0; time < (world.scale === 'full' ? 6 : 2); time++) {
        await lasting(1_000)
        const mode = MODES[time % MODES.length] as Mode
        const end = world.fault(`connections are a ${mode}`)
        const silent = proxy.connections()
        for (const connection of silent) connection.mode = mode
        await lasting(SILENT_MS)
        for (const connection of silent) connection.destroy()
        end()
      }
    })
  },
  check: checkUnknown,
}

/** Checks that an outcome was unknown; otherwise the scenario proves nothing. */
function checkUnknown({ entries }: Evidence): readonly Violation[] {
  return entries.some((entry) => entry.what === 'event' && entry.type === 'unknown')
    ? []
    : [{ rule: 'scenario', text: 'no outcome was unknown' }]
}
