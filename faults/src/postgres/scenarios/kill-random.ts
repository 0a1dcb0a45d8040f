import { killAtRandom } from '../../kill-random.ts'
import type { PostgresScenario } from '../world.ts'

export const killRandom: PostgresScenario = {
  name: 'kill-random',
  story: 'consumers are killed at random under load; whatever they had in hand comes back',
  service: 'postgres',
  messages: { quick: 2_000, full: 15_000 },
  play: killAtRandom,
}
