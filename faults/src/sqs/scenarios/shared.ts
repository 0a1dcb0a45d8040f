import { CLIENT_CLOCK, playWithWrongClocks } from '../../harness/client-clock.ts'
import { CRASH_LOOP, killByMessage } from '../../harness/crash-loop.ts'
import { KILL_RANDOM, killAtRandom } from '../../harness/kill-random.ts'
import type { SqsScenario } from '../world.ts'

const SERVICE = 'elasticmq'

export const killRandom: SqsScenario = {
  ...KILL_RANDOM,
  service: SERVICE,
  messages: { quick: 2_000, full: 20_000 },
  play: killAtRandom,
}

export const crashLoop: SqsScenario = {
  ...CRASH_LOOP,
  service: SERVICE,
  play: (world) => killByMessage(world, 20),
}

export const clientClock: SqsScenario = {
  ...CLIENT_CLOCK,
  service: SERVICE,
  // SQS delays retries also while no consumer runs.
  play: (world) => playWithWrongClocks(world, { downMs: 2_000 }),
}
