import { killAtRandom } from '../../harness/kill-random.ts'
import type { PostgresScenario } from '../world.ts'

export const killRandom: PostgresScenario = {
  name: 'kill-random',
  story: 'consumers are killed at random under load; their in-flight messages are delivered again',
  service: 'postgres',
  messages: { quick: 2_000, full: 15_000 },
  play: killAtRandom,
}
