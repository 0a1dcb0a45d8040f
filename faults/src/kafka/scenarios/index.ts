import type { KafkaScenario } from '../world.ts'
import { clientClock } from './client-clock.ts'
import { killAtBoundaries, transactional } from './kill-at-boundaries.ts'
import { killRandom } from './kill-random.ts'
import { largeRecords } from './large-records.ts'
import { brokerRestart, controllerKill } from './nodes.ts'
import { ordered } from './ordered.ts'
import { partitionsAdded } from './partitions-added.ts'
import { produceErrors } from './produce-errors.ts'
import { rebalanceStorm } from './rebalance-storm.ts'
import { stopped } from './stopped.ts'
import { topicRecreated } from './topic-recreated.ts'
import { twoTopics } from './two-topics.ts'

export const SCENARIOS: readonly KafkaScenario[] = [
  killAtBoundaries,
  killRandom,
  stopped,
  brokerRestart,
  controllerKill,
  rebalanceStorm,
  twoTopics,
  partitionsAdded,
  topicRecreated,
  produceErrors,
  largeRecords,
  clientClock,
  ordered,
  transactional,
]
