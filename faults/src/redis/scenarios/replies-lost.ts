import type { Evidence, Violation } from '../../evidence/evidence.ts'
import { underLoad } from '../../harness/load.ts'
import { type Mode, startProxy } from '../../harness/proxy.ts'
import { lasting } from '../../harness/wait.ts'
import type { RedisScenario } from '../world.ts'

const RATE = 300
const SILENT_MS = 1_000

/** First the server runs scripts and its responses are lost, then it gets nothing. */
const MODES: readonly Mode[] = ['deaf-client', 'black-hole']

export const repliesLost: RedisScenario = {
  name: 'replies-lost',
  story:
    'the server runs scripts and its responses never arrive, or the scripts never arrive; then the connection breaks, and one of two clients sends them again',
  service: 'redis-restarts',
  messages: { smoke: 800, quick: 1_500, full: 10_000 },
  async play(world) {
    const url = new URL(world.broker.url)
    const proxy = await startProxy(Number(url.port))
    world.atEnd(() => proxy.close())
    url.port = String(proxy.port)
    // Slow enough that handlers run when the responses stop: their results are unknown.
    const fleet = { url: url.href, lease: '15s', workMs: 100 } as const
    const consumers = [{ isResending: true }, { isResending: false }]
    await underLoad(world, { consumers, ratePerSecond: RATE, fleet }, async () => {
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
