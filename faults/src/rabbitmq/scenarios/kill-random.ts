import { killAtRandom } from '../../kill-random.ts'
import type { RabbitScenario } from '../world.ts'

export const killRandom: RabbitScenario = {
  name: 'kill-random',
  story: 'consumers are killed at random under load; whatever they had in hand comes back',
  service: 'rabbitmq',
  messages: { quick: 3_000, full: 30_000 },
  play: killAtRandom,
}
