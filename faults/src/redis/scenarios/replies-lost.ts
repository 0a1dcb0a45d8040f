import { underLoad } from '../../harness/load.ts'
import { checkUnknown, proxyTo, silenceInTurn } from '../../harness/silence.ts'
import type { RedisScenario } from '../world.ts'

const RATE = 300
const SILENT_MS = 1_000

export const repliesLost: RedisScenario = {
  name: 'replies-lost',
  story:
    'the server runs scripts and its responses never arrive, or the scripts never arrive; then the connection breaks, and one of two clients sends them again',
  service: 'redis-restarts',
  messages: { smoke: 800, quick: 1_500, full: 10_000 },
  async play(world) {
    const { proxy, url } = await proxyTo(world, world.broker.url)
    // Slow enough that handlers run when the responses stop: their results are unknown.
    const fleet = { url: url.href, lease: '15s', workMs: 100 } as const
    const consumers = [{ isResending: true }, { isResending: false }]
    await underLoad(world, { consumers, ratePerSecond: RATE, fleet }, () =>
      silenceInTurn(world, proxy, SILENT_MS),
    )
  },
  check: checkUnknown,
}
