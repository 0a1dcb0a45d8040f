import { underLoad } from '../../harness/load.ts'
import { checkUnknown, proxyTo, silenceInTurn } from '../../harness/silence.ts'
import type { SqsScenario } from '../world.ts'

const RATE = 200
/** Longer than the wait for a response: outcomes are unknown. */
const SILENT_MS = 6_000

export const repliesLost: SqsScenario = {
  name: 'replies-lost',
  story:
    'SQS stores copies and its responses never arrive, or the copies never arrive; then the connections break',
  service: 'elasticmq',
  messages: { smoke: 1_000, quick: 2_000, full: 8_000 },
  async play(world) {
    const { proxy, url } = await proxyTo(world, world.broker.endpoint)
    // Longer than a wait for a response: an outcome is unknown before the lease ends.
    const fleet = { endpoint: url.origin, lease: '15s' } as const
    await underLoad(world, { consumers: 2, ratePerSecond: RATE, fleet }, () =>
      silenceInTurn(world, proxy, SILENT_MS),
    )
  },
  check: checkUnknown,
}
