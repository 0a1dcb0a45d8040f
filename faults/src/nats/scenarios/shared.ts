import { CLIENT_CLOCK, playWithWrongClocks } from '../../harness/client-clock.ts'
import { CRASH_LOOP, killByMessage } from '../../harness/crash-loop.ts'
import { KILL_RANDOM, killAtRandom } from '../../harness/kill-random.ts'
import type { NatsScenario } from '../world.ts'

const SERVICE = 'nats-restarts'

export const killRandom: NatsScenario = {
  ...KILL_RANDOM,
  service: SERVICE,
  play: killAtRandom,
}

export const crashLoop: NatsScenario = {
  ...CRASH_LOOP,
  service: SERVICE,
  play: (world) => killByMessage(world, 20),
}

export const clientClock: NatsScenario = {
  ...CLIENT_CLOCK,
  service: SERVICE,
  // The server publishes due retries also while no consumer runs.
  play: (world) => playWithWrongClocks(world, { downMs: 2_000 }),
}
