import type { Evidence, Violation } from '../../evidence/evidence.ts'
import { type Mode, startProxy } from '../../harness/proxy.ts'
import { underLoad } from '../../harness/load.ts'
import { lasting } from '../../harness/wait.ts'
import type { NatsScenario } from '../world.ts'

const RATE = 300
const SILENT_MS = 1_000

/** First the server gets copies and acknowledgements and its responses are lost, then it gets nothing. */
const MODES: readonly Mode[] = ['deaf-client', 'black-hole']

export const repliesLost: NatsScenario = {
  name: 'replies-lost',
  story:
    'the server stores copies and its responses never arrive, or the copies never arrive; then the connection breaks',
  service: 'nats-restarts',
  messages: { smoke: 800, quick: 1_500, full: 10_000 },
  async play(world) {
    const url = new URL(world.broker.servers[0] ?? '')
    const proxy = await startProxy(Number(url.port))
    world.atEnd(() => proxy.close())
    url.port = String(proxy.port)
    // Longer than a wait for a response: an outcome is unknown before the lease ends.
    const fleet = { servers: [url.href], lease: '15s' } as const
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
