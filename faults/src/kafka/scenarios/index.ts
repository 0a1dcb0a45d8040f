import type { KafkaScenario } from '../world.ts'
import { killAtBoundaries, transactional } from './kill-at-boundaries.ts'
import { killRandom } from './kill-random.ts'
import { brokerRestart, controllerKill } from './nodes.ts'
import { ordered } from './ordered.ts'
import { produceErrors } from './produce-errors.ts'
import { rebalanceStorm } from './rebalance-storm.ts'
import { stopped } from './stopped.ts'

export const SCENARIOS: readonly KafkaScenario[] = [
  killAtBoundaries,
  killRandom,
  stopped,
  brokerRestart,
  controllerKill,
  rebalanceStorm,
  produceErrors,
  ordered,
  transactional,
]
