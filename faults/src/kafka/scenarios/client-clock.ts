import { CLIENT_CLOCK, playWithWrongClocks } from '../../harness/client-clock.ts'
import type { KafkaScenario } from '../world.ts'
import { createSource, onCluster } from './load.ts'

/** Long enough that retries are late if a new consumer does not measure their age. */
const DOWN_MS = 8_000

export const clientClock: KafkaScenario = onCluster({
  ...CLIENT_CLOCK,
  async play(world) {
    await createSource(world)
    await playWithWrongClocks(world, { downMs: DOWN_MS })
  },
})
