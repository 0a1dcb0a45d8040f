import { KILL_RANDOM, killAtRandom } from '../../harness/kill-random.ts'
import type { PostgresScenario } from '../world.ts'

export const killRandom: PostgresScenario = {
  ...KILL_RANDOM,
  service: 'postgres',
  messages: { quick: 2_000, full: 15_000 },
  play: killAtRandom,
}
