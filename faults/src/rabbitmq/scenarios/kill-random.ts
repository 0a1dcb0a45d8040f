import { killAtRandom } from '../../harness/kill-random.ts'
import type { RabbitScenario } from '../world.ts'

export const killRandom: RabbitScenario = {
  name: 'kill-random',
  story: 'consumers are killed at random under load; their in-flight messages are delivered again',
  service: 'rabbitmq',
  messages: { quick: 3_000, full: 30_000 },
  play: killAtRandom,
}
