import { underLoad } from '../../harness/load.ts'
import { checkUnknown, proxyTo, silenceInTurn } from '../../harness/silence.ts'
import type { NatsScenario } from '../world.ts'

const RATE = 300
const SILENT_MS = 1_000

export const repliesLost: NatsScenario = {
  name: 'replies-lost',
  story:
    'the server stores copies and its responses never arrive, or the copies never arrive; then the connection breaks',
  service: 'nats-restarts',
  messages: { smoke: 800, quick: 1_500, full: 10_000 },
  async play(world) {
    const { proxy, url } = await proxyTo(world, world.broker.servers[0] ?? '')
    // Longer than a wait for a response: an outcome is unknown before the lease ends.
    const fleet = { servers: [url.href], lease: '15s' } as const
    await underLoad(world, { consumers: 2, ratePerSecond: RATE, fleet }, () =>
      silenceInTurn(world, proxy, SILENT_MS),
    )
  },
  check: checkUnknown,
}
