import { CLIENT_CLOCK, playWithWrongClocks } from '../../harness/client-clock.ts'
import type { KafkaScenario } from '../world.ts'
import { createSource, onCluster } from './load.ts'

/** Long enough that retries are late if a new consumer does not measure their age. */
const DOWN_MS = 8_000
/** Every retry is due later than the consumers return: sending, the pause and a start need less than its 18 s. */
const SENDING_S = 5

export const clientClock: KafkaScenario = onCluster({
  ...CLIENT_CLOCK,
  messages: { quick: 500, full: 1_000 },
  async play(world) {
    await createSource(world)
    const ratePerSecond = world.messages / SENDING_S
    await playWithWrongClocks(world, { downMs: DOWN_MS, ratePerSecond })
  },
})
