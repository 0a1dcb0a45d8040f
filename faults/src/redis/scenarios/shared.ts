import { CLIENT_CLOCK, playWithWrongClocks } from '../../harness/client-clock.ts'
import { CRASH_LOOP, killByMessage } from '../../harness/crash-loop.ts'
import { KILL_RANDOM, killAtRandom } from '../../harness/kill-random.ts'
import type { RedisScenario } from '../world.ts'

const SERVICE = 'redis-restarts'

export const killRandom: RedisScenario = {
  ...KILL_RANDOM,
  service: SERVICE,
  play: killAtRandom,
}

export const crashLoop: RedisScenario = {
  ...CRASH_LOOP,
  service: SERVICE,
  play: (world) => killByMessage(world, 20),
}

export const clientClock: RedisScenario = {
  ...CLIENT_CLOCK,
  service: SERVICE,
  // Retries wait in the server while no consumer runs.
  play: (world) => playWithWrongClocks(world, { downMs: 2_000 }),
}
