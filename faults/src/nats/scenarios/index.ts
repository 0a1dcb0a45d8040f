import type { NatsScenario } from '../world.ts'
import { clientClock, crashLoop, killRandom } from './shared.ts'
import { fullStream } from './full-stream.ts'
import { killAtBoundaries } from './kill-at-boundaries.ts'
import { repliesLost } from './replies-lost.ts'
import { nodeLoss, serverRestart } from './servers.ts'
import { stopped } from './stopped.ts'

export const SCENARIOS: readonly NatsScenario[] = [
  killAtBoundaries,
  killRandom,
  stopped,
  serverRestart,
  nodeLoss,
  repliesLost,
  fullStream,
  crashLoop,
  clientClock,
]
