import { KILL_RANDOM, killAtRandom } from '../../harness/kill-random.ts'
import type { RabbitScenario } from '../world.ts'

export const killRandom: RabbitScenario = {
  ...KILL_RANDOM,
  service: 'rabbitmq',
  messages: { quick: 3_000, full: 30_000 },
  play: killAtRandom,
}
