import { CLIENT_CLOCK, playWithWrongClocks } from '../../harness/client-clock.ts'
import { killByMessage } from '../../harness/crash-loop.ts'
import { killAtRandom } from '../../harness/kill-random.ts'
import type { RedisScenario } from '../world.ts'

const SERVICE = 'redis-restarts'

export const killRandom: RedisScenario = {
  name: 'kill-random',
  story: 'consumers are killed at random under load; their in-flight messages are delivered again',
  service: SERVICE,
  messages: { quick: 2_000, full: 30_000 },
  play: killAtRandom,
}

export const crashLoop: RedisScenario = {
  name: 'crash-loop',
  story: 'one message kills every process that runs it; it is quarantined, the others are handled',
  service: SERVICE,
  messages: { quick: 100, full: 300 },
  play: (world) => killByMessage(world, 20),
}

export const clientClock: RedisScenario = {
  ...CLIENT_CLOCK,
  service: SERVICE,
  // Retries wait in the server while no consumer runs.
  play: (world) => playWithWrongClocks(world, { downMs: 2_000 }),
}
