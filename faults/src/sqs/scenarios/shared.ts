import { CLIENT_CLOCK, playWithWrongClocks } from '../../harness/client-clock.ts'
import { killByMessage } from '../../harness/crash-loop.ts'
import { killAtRandom } from '../../harness/kill-random.ts'
import type { SqsScenario } from '../world.ts'

const SERVICE = 'elasticmq'

export const killRandom: SqsScenario = {
  name: 'kill-random',
  story: 'consumers are killed at random under load; their in-flight messages are delivered again',
  service: SERVICE,
  messages: { quick: 2_000, full: 20_000 },
  play: killAtRandom,
}

export const crashLoop: SqsScenario = {
  name: 'crash-loop',
  story: 'one message kills every process that runs it; it is quarantined, the others are handled',
  service: SERVICE,
  messages: { quick: 100, full: 300 },
  play: (world) => killByMessage(world, 20),
}

export const clientClock: SqsScenario = {
  ...CLIENT_CLOCK,
  service: SERVICE,
  // SQS delays retries also while no consumer runs.
  play: (world) => playWithWrongClocks(world, { downMs: 2_000 }),
}
