import type { RabbitScenario } from '../world.ts'
import { adoption } from './adoption.ts'
import { brokerRestart } from './broker-restart.ts'
import { clientClock } from './client-clock.ts'
import { crashLoop } from './crash-loop.ts'
import { deadLetterFaults } from './dead-letters.ts'
import { declareTogether } from './declare-together.ts'
import { killAtBoundaries } from './kill-at-boundaries.ts'
import { killRandom } from './kill-random.ts'
import { memoryAlarmed } from './memory-alarm.ts'
import { mixedDelays } from './mixed-delays.ts'
import { leaderKill, nodeRestart, partitions } from './nodes.ts'
import { ordered } from './ordered.ts'
import { stopPastTimeout } from './stopped.ts'
import { confirmDropped, halfOpen } from './network.ts'

export const SCENARIOS: readonly RabbitScenario[] = [
  killAtBoundaries,
  killRandom,
  stopPastTimeout,
  declareTogether,
  brokerRestart,
  nodeRestart,
  leaderKill,
  ...partitions,
  halfOpen,
  confirmDropped,
  ...deadLetterFaults,
  memoryAlarmed,
  crashLoop,
  mixedDelays,
  clientClock,
  adoption,
  ordered,
]
